import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models
from leaderboard.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('pghistory', '0007_auto_20250421_0444'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('name', models.CharField(blank=True, max_length=255)),
                ('is_active', models.BooleanField(default=True)),
                ('is_staff', models.BooleanField(default=False, help_text='May operate every benchmark.')),
                ('joined_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('told_by_mail', models.BooleanField(default=False, help_text="Of review, refusal and changed ranks of one's agents.")),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('email', django.db.models.functions.text.Lower('email'))), name='user_email_is_lower_case')],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('public_id', models.CharField(max_length=12, unique=True)),
                ('sha256', models.BinaryField(max_length=32)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('read', 'Read'), ('submit', 'Submit'), ('operate', 'Operate')], max_length=16), size=None)),
                ('benchmarks', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(max_length=100), blank=True, default=list, help_text="Empty: all of its owner's.", size=None)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, help_text='To the hour.', null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('scopes__contained_by', ['read', 'submit', 'operate']), models.Q(('scopes', []), _negated=True)), name='apitoken_scopes_known'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at'))), name='apitoken_expires_after_creation')],
            },
        ),
        migrations.CreateModel(
            name='ApiTokenChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('name', models.CharField(max_length=255)),
                ('public_id', models.CharField(max_length=12)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('read', 'Read'), ('submit', 'Submit'), ('operate', 'Operate')], max_length=16), size=None)),
                ('benchmarks', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(max_length=100), blank=True, default=list, help_text="Empty: all of its owner's.", size=None)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='user_name_public_id_scopes_benchmarks_expires_at_revoked_at_events', to='accounts.apitoken')),
                ('user', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Counted',
            fields=[
                ('key', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('value', models.TextField(help_text='JSON.')),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='counted_by_end')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apitoken',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "accounts_apitokenchange" ("benchmarks", "expires_at", "name", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "public_id", "revoked_at", "scopes", "user_id") VALUES (NEW."benchmarks", NEW."expires_at", NEW."name", _pgh_attach_context(), NOW(), \'insert\', NEW."id", NEW."public_id", NEW."revoked_at", NEW."scopes", NEW."user_id"); RETURN NULL;', hash='33a85ff46a6165df0b966b02da71cff4c45714f6', operation='INSERT', pgid='pgtrigger_insert_insert_01b7d', table='accounts_apitoken', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apitoken',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."benchmarks" IS DISTINCT FROM (NEW."benchmarks") OR OLD."expires_at" IS DISTINCT FROM (NEW."expires_at") OR OLD."revoked_at" IS DISTINCT FROM (NEW."revoked_at") OR OLD."scopes" IS DISTINCT FROM (NEW."scopes"))', func='INSERT INTO "accounts_apitokenchange" ("benchmarks", "expires_at", "name", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "public_id", "revoked_at", "scopes", "user_id") VALUES (NEW."benchmarks", NEW."expires_at", NEW."name", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."public_id", NEW."revoked_at", NEW."scopes", NEW."user_id"); RETURN NULL;', hash='c62d4e8a8785a70161a3be23959049062b79b6a2', operation='UPDATE', pgid='pgtrigger_update_update_df53b', table='accounts_apitoken', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apitokenchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='705d526de2a724b21aff37ac749a5df449d5d2b2', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_a51c7', table='accounts_apitokenchange', when='BEFORE')),
        ),
    ]
