import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models
from leaderboard.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('catalog', '0001_initial'),
        ('studies', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Board',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='Public; the latest is the highest.')),
                ('data_version', models.BigIntegerField()),
                ('rules', models.CharField(help_text='SHA-256 of what policy, switches and open requests say of the numbers.', max_length=64)),
                ('estimator_version', models.PositiveIntegerField()),
                ('phase', models.CharField(choices=[('cold_start', 'Cold Start'), ('provisional', 'Provisional'), ('ongoing', 'Ongoing'), ('revalidating', 'Revalidating'), ('saturated', 'Saturated'), ('unsuited', 'Unsuited')], max_length=16)),
                ('target', models.CharField(help_text='What the board is ordered by.', max_length=8)),
                ('n_tasks', models.PositiveIntegerField(help_text='Active tasks.')),
                ('n_complete', models.PositiveIntegerField(help_text='Complete agents.')),
                ('content', models.JSONField(help_text='What is known of it (`Standings.as_plain`), but for the agents.')),
                ('digest', models.CharField(help_text='SHA-256 of the canonical JSON; see boards.signing.', max_length=64)),
                ('published_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='boards', to='catalog.benchmark')),
                ('calibration', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='boards', to='studies.calibration')),
                ('policy', models.ForeignKey(help_text='In force when it was made.', on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
                ('subset', models.ForeignKey(help_text='Empty before one is fixed.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='boards', to='studies.tasksubset')),
                ('validation', models.ForeignKey(help_text='The latest there was.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='boards', to='studies.validationstudy')),
                ('variance', models.ForeignKey(help_text='The latest there was.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='boards', to='studies.variancestudy')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'number'), name='board_number_once'), models.CheckConstraint(condition=models.Q(('phase__in', ['cold_start', 'provisional', 'ongoing', 'revalidating', 'saturated', 'unsuited'])), name='board_phase_known')],
            },
        ),
        migrations.CreateModel(
            name='Entry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField(help_text='On the board; ties are told in these.')),
                ('rank', models.PositiveIntegerField(help_text='For the target that the board is ordered by.', null=True)),
                ('name', models.CharField(max_length=255)),
                ('line', models.JSONField(help_text='What `Line` tells of it, but its name.')),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='catalog.agent')),
                ('board', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='boards.board')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('board', 'agent'), name='entry_once'), models.UniqueConstraint(fields=('board', 'position'), name='entry_position_once')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='board',
            trigger=pgtrigger.compiler.Trigger(name='board_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='61ffdb08bc08ff0d9eec13a3f050b5306943ec94', operation='UPDATE OR DELETE', pgid='pgtrigger_board_is_append_only_90476', table='boards_board', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='entry',
            trigger=pgtrigger.compiler.Trigger(name='entry_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='12d7af4c5ff608b6959fa6f9e5c4dcfc896ca0d3', operation='UPDATE OR DELETE', pgid='pgtrigger_entry_is_append_only_47590', table='boards_entry', when='BEFORE')),
        ),
    ]
