import django.contrib.postgres.fields
import django.db.models.deletion
import leaderboard.submissions.models
import pgtrigger.compiler
import pgtrigger.migrations
import uuid
from django.conf import settings
from django.db import migrations, models
from leaderboard.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('accounts', '0001_initial'),
        ('catalog', '0001_initial'),
        ('pghistory', '0007_auto_20250421_0444'),
    ]

    operations = [
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('status', models.CharField(choices=[('checking', 'Checking'), ('waiting', 'Waiting'), ('accepted', 'Accepted'), ('refused', 'Refused'), ('superseded', 'Superseded'), ('withdrawn', 'Withdrawn')], max_length=16)),
                ('submitted_at', models.DateTimeField(help_text='As stated by the submitter.', null=True)),
                ('imprecise', models.BooleanField(default=False, help_text='Only the month or year of submitted_at is known.')),
                ('received_at', models.DateTimeField(help_text='By the clock of the service.')),
                ('backdated', models.BooleanField(default=False)),
                ('content_sha256', models.BinaryField(max_length=32)),
                ('n_outcomes', models.PositiveIntegerField()),
                ('n_invalid', models.PositiveIntegerField()),
                ('links', models.JSONField(default=dict)),
                ('embargo_until', models.DateTimeField(help_text='Hidden until this time.', null=True)),
                ('loaded', models.BooleanField(default=False, help_text='Loaded by an operator: all trials count, and invalid ones are confirmed.')),
                ('asked', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), help_text='Ids of the requested tasks; empty: all active tasks.', null=True, size=None)),
                ('n_trials', models.PositiveSmallIntegerField(help_text='Requested trials per task; empty: as many as submitted.', null=True)),
                ('study_id', models.BigIntegerField(help_text='Id of the study that chose the requested tasks in that order; empty: none did.', null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='catalog.agent')),
                ('replaces', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replaced_by', to='submissions.submission')),
                ('submitted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to=settings.AUTH_USER_MODEL)),
                ('token', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='accounts.apitoken')),
            ],
            options={
                'indexes': [models.Index(fields=['agent', 'status'], name='submission_of_agent')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['checking', 'waiting', 'accepted', 'refused', 'superseded', 'withdrawn'])), name='submission_status_known'), models.CheckConstraint(condition=models.Q(('n_outcomes__gte', 1)), name='submission_not_empty'), models.CheckConstraint(condition=models.Q(('asked__isnull', True), ('asked__len__gte', 1), _connector='OR'), name='submission_asked_not_empty'), models.CheckConstraint(condition=models.Q(('n_trials__isnull', True), ('n_trials__gte', 1), _connector='OR'), name='submission_n_trials_positive'), models.UniqueConstraint(condition=models.Q(('status__in', ('checking', 'waiting', 'accepted'))), fields=('agent', 'content_sha256'), name='submission_content_once')],
            },
        ),
        migrations.CreateModel(
            name='MachineCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('found', models.JSONField(help_text='Each: name, level (passed, noted, warned), message.')),
                ('at', models.DateTimeField()),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='machine_check', to='submissions.submission')),
            ],
        ),
        migrations.CreateModel(
            name='OutcomeDetail',
            fields=[
                ('pk', models.CompositePrimaryKey('submission_id', 'task_id', 'setting_id', 'trial', blank=True, editable=False, primary_key=True, serialize=False)),
                ('submission_id', models.IntegerField()),
                ('task_id', models.IntegerField()),
                ('setting_id', models.IntegerField()),
                ('trial', models.SmallIntegerField()),
                ('cost_usd', models.FloatField(null=True)),
                ('n_input_tokens', models.BigIntegerField(null=True)),
                ('n_output_tokens', models.BigIntegerField(null=True)),
                ('seconds_environment', models.FloatField(null=True)),
                ('seconds_execution', models.FloatField(null=True)),
                ('seconds_scoring', models.FloatField(null=True)),
                ('human', models.FloatField(help_text='Result according to people.', null=True)),
                ('human_probability', models.FloatField(help_text='Probability that the task was sampled for human review.', null=True)),
                ('metadata', models.JSONField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Setting',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('prompt_variant', models.CharField(max_length=255, null=True)),
                ('judge', models.CharField(max_length=255, null=True)),
                ('temperature', models.FloatField(null=True)),
                ('run', models.CharField(max_length=255, null=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='settings', to='catalog.benchmark')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'prompt_variant', 'judge', 'temperature', 'run'), name='setting_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('prompt_variant', ''), _negated=True), models.Q(('judge', ''), _negated=True), models.Q(('run', ''), _negated=True)), name='setting_stated')],
            },
        ),
        migrations.CreateModel(
            name='StatusChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('checking', 'Checking'), ('waiting', 'Waiting'), ('accepted', 'Accepted'), ('refused', 'Refused'), ('superseded', 'Superseded'), ('withdrawn', 'Withdrawn')], max_length=16)),
                ('data_version', models.BigIntegerField(help_text='The data version of the benchmark that was reached with this; empty where it changed nothing that counts.', null=True)),
                ('after_board', models.BooleanField(default=False, help_text='A board had shown the agent before its owner withdrew results or submitted them again.')),
                ('judged', models.CharField(blank=True, choices=[('implausible', 'Implausible'), ('reviewed', 'Reviewed')], default='', max_length=16)),
                ('at', models.DateTimeField()),
                ('reason', models.TextField(blank=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='status_changes', to='submissions.submission')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['checking', 'waiting', 'accepted', 'refused', 'superseded', 'withdrawn'])), name='statuschange_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('data_version__isnull', False), ('status__in', ('accepted', 'superseded', 'withdrawn'))), ('status', 'waiting'), models.Q(models.Q(('status__in', ('accepted', 'superseded', 'withdrawn')), _negated=True), ('data_version__isnull', True)), _connector='OR'), name='statuschange_counts_with_version'), models.CheckConstraint(condition=models.Q(('after_board', False), ('status__in', ('accepted', 'superseded', 'withdrawn')), _connector='OR'), name='statuschange_after_board_counts')],
            },
        ),
        migrations.CreateModel(
            name='SubmissionChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('status', models.CharField(choices=[('checking', 'Checking'), ('waiting', 'Waiting'), ('accepted', 'Accepted'), ('refused', 'Refused'), ('superseded', 'Superseded'), ('withdrawn', 'Withdrawn')], max_length=16)),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='status_events', to='submissions.submission')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Verification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verified', models.BooleanField()),
                ('data_version', models.BigIntegerField(help_text='The data version of the benchmark that was reached with this.')),
                ('at', models.DateTimeField()),
                ('note', models.TextField(blank=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='verifications', to='submissions.submission')),
            ],
        ),
        migrations.CreateModel(
            name='AccountTrust',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trusted', models.BooleanField()),
                ('data_version', models.BigIntegerField(help_text='The data version of the benchmark that was reached with this.')),
                ('at', models.DateTimeField()),
                ('reason', models.TextField()),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='account_trusts', to='catalog.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='accounttrust_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('data_version', models.BigIntegerField(help_text='The data version of the benchmark that was reached with this.')),
                ('at', models.DateTimeField()),
                ('reason', models.TextField()),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='approvals', to='catalog.agent')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='approval_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('request_sha256', models.BinaryField(max_length=32)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.JSONField(null=True)),
                ('created_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.benchmark')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='submissions.submission')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'benchmark', 'key'), name='idempotencykey_once')],
            },
        ),
        migrations.CreateModel(
            name='InvalidConfirmation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('data_version', models.BigIntegerField(help_text='The data version of the benchmark that was reached with this.')),
                ('at', models.DateTimeField()),
                ('reason', models.TextField(blank=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='confirmation', to='submissions.submission')),
            ],
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('pk', models.CompositePrimaryKey('submission_id', 'task_id', 'setting_id', 'trial', blank=True, editable=False, primary_key=True, serialize=False)),
                ('submission_id', models.IntegerField()),
                ('task_id', models.IntegerField()),
                ('setting_id', models.IntegerField()),
                ('trial', models.SmallIntegerField()),
                ('value', leaderboard.submissions.models.RealField(help_text='From 0 to 1; empty only where the trial is invalid.', null=True)),
                ('valid', models.BooleanField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('value__range', (0, 1))), name='outcome_value_range'), models.CheckConstraint(condition=models.Q(('value__isnull', False), ('valid', False), _connector='OR'), name='outcome_valid_has_value'), models.CheckConstraint(condition=models.Q(('trial__gte', 0)), name='outcome_trial_not_negative')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='outcome',
            trigger=pgtrigger.compiler.Trigger(name='outcome_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='b0c20f231b993d7ed917169d2e82a767b23e0227', operation='UPDATE OR DELETE', pgid='pgtrigger_outcome_is_append_only_ee065', table='submissions_outcome', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='outcomedetail',
            trigger=pgtrigger.compiler.Trigger(name='outcomedetail_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='ee7e819de66539187ce66fcd698682d4aa3fc078', operation='UPDATE OR DELETE', pgid='pgtrigger_outcomedetail_is_append_only_4537b', table='submissions_outcomedetail', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='accounttrust',
            trigger=pgtrigger.compiler.Trigger(name='accounttrust_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='8a4d0e7bf153d29648f54f145432f94b2c3b366b', operation='UPDATE OR DELETE', pgid='pgtrigger_accounttrust_is_append_only_965c6', table='submissions_accounttrust', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='approval_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='e23db554061dc350643d1d7c607934b6f3febaef', operation='UPDATE OR DELETE', pgid='pgtrigger_approval_is_append_only_91217', table='submissions_approval', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='setting',
            trigger=pgtrigger.compiler.Trigger(name='setting_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='e9a318c8dd284bfccd960765d342e32dd61ac6ce', operation='UPDATE OR DELETE', pgid='pgtrigger_setting_is_append_only_b2eb4', table='submissions_setting', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='submission',
            trigger=pgtrigger.compiler.Trigger(name='submission_is_never_deleted', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='7d0f94460e05a1105ed7ce1e1c70b99bdd17a4d5', operation='DELETE', pgid='pgtrigger_submission_is_never_deleted_45a90', table='submissions_submission', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='submission',
            trigger=pgtrigger.compiler.Trigger(name='submission_changes_status_only', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."agent_id" IS DISTINCT FROM (NEW."agent_id") OR OLD."asked" IS DISTINCT FROM (NEW."asked") OR OLD."backdated" IS DISTINCT FROM (NEW."backdated") OR OLD."content_sha256" IS DISTINCT FROM (NEW."content_sha256") OR OLD."embargo_until" IS DISTINCT FROM (NEW."embargo_until") OR OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."imprecise" IS DISTINCT FROM (NEW."imprecise") OR OLD."links" IS DISTINCT FROM (NEW."links") OR OLD."loaded" IS DISTINCT FROM (NEW."loaded") OR OLD."n_invalid" IS DISTINCT FROM (NEW."n_invalid") OR OLD."n_outcomes" IS DISTINCT FROM (NEW."n_outcomes") OR OLD."n_trials" IS DISTINCT FROM (NEW."n_trials") OR OLD."received_at" IS DISTINCT FROM (NEW."received_at") OR OLD."replaces_id" IS DISTINCT FROM (NEW."replaces_id") OR OLD."study_id" IS DISTINCT FROM (NEW."study_id") OR OLD."submitted_at" IS DISTINCT FROM (NEW."submitted_at") OR OLD."submitted_by_id" IS DISTINCT FROM (NEW."submitted_by_id") OR OLD."token_id" IS DISTINCT FROM (NEW."token_id") OR OLD."uuid" IS DISTINCT FROM (NEW."uuid"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='b571a7cdd4c60fc1f4a9797e8f292a0f21f9786e', operation='UPDATE', pgid='pgtrigger_submission_changes_status_only_e94d7', table='submissions_submission', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='submission',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."status" IS DISTINCT FROM (NEW."status"))', func='INSERT INTO "submissions_submissionchange" ("pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "status") VALUES (_pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."status"); RETURN NULL;', hash='41a15b6d71675b4cb104741f48b0dffd67261e88', operation='UPDATE', pgid='pgtrigger_update_update_57bc9', table='submissions_submission', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statuschange',
            trigger=pgtrigger.compiler.Trigger(name='statuschange_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='23c287fb9541e502de5644e9de3c277a66b9aaf0', operation='UPDATE OR DELETE', pgid='pgtrigger_statuschange_is_append_only_934d3', table='submissions_statuschange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='machinecheck',
            trigger=pgtrigger.compiler.Trigger(name='machinecheck_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='f5092cdc6dd1edc0ac73e52de160ea99a2f8fec6', operation='UPDATE OR DELETE', pgid='pgtrigger_machinecheck_is_append_only_b1496', table='submissions_machinecheck', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='invalidconfirmation',
            trigger=pgtrigger.compiler.Trigger(name='confirmation_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='41039d165f7ec106f8c74e937a98dbc3cde1c04f', operation='UPDATE OR DELETE', pgid='pgtrigger_confirmation_is_append_only_d42e8', table='submissions_invalidconfirmation', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='submissionchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='df0e8230576a00395485e0dd6b04e6c341ca5d03', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_4dfdb', table='submissions_submissionchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='verification',
            trigger=pgtrigger.compiler.Trigger(name='verification_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='ae8c749ceba9b7e159994b09ec5e59edee28d331', operation='UPDATE OR DELETE', pgid='pgtrigger_verification_is_append_only_cc5b5', table='submissions_verification', when='BEFORE')),
        ),
    ]
