import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models
from leaderboard.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('catalog', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='AgentScores',
            fields=[
                ('agent', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='scores', serialize=False, to='catalog.agent')),
                ('key', models.CharField(help_text='SHA-256 of what decides it: its deliveries, the active tasks, how outcomes are counted.', max_length=64)),
                ('under', models.CharField(help_text='SHA-256 of the conditions that are compared.', max_length=64)),
                ('data_version', models.BigIntegerField(help_text='Of the benchmark when it was read.')),
                ('n_tasks', models.PositiveIntegerField(help_text='Active tasks, in ascending order of name.')),
                ('arrays', models.BinaryField(help_text='Little-endian, one after the other; see studies.record_cache.')),
                ('content', models.JSONField(help_text='What is no array.')),
            ],
        ),
        migrations.CreateModel(
            name='VerifiedReference',
            fields=[
                ('benchmark', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='verified_reference', serialize=False, to='catalog.benchmark')),
                ('sha256', models.CharField(help_text='Of tasks and means, to tell whether it is still right.', max_length=64)),
                ('tasks', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), help_text='Ids of the active tasks, by name.', size=None)),
                ('n_agents', models.PositiveIntegerField()),
                ('is_pass_fail', models.BooleanField(help_text='No outcome of theirs lies between 0 and 1.')),
                ('judged_upto', models.BigIntegerField(default=-1, help_text='Data version up to which deliveries were judged by who was verified then.')),
                ('arrays', models.BinaryField(help_text='Means by agent, then difficulties: little-endian, compressed.')),
            ],
        ),
        migrations.CreateModel(
            name='TaskSubset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('data_version', models.BigIntegerField(help_text='Reached with the delivery that fixed it, or the approval that activated it.')),
                ('estimator_version', models.PositiveIntegerField()),
                ('lo', models.FloatField()),
                ('hi', models.FloatField()),
                ('widened', models.BooleanField()),
                ('provisional', models.BooleanField(help_text='Chosen from 5 to 14 complete agents.')),
                ('strategy', models.CharField(choices=[('mid_range', 'Mid Range'), ('greedy', 'Greedy'), ('random', 'Random'), ('easiest', 'Easiest'), ('hardest', 'Hardest'), ('stratified', 'Stratified'), ('information', 'Information'), ('spread', 'Spread'), ('forecast', 'Forecast')], max_length=16)),
                ('chosen_from', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Ids of the complete agents, by name.', size=None)),
                ('compared', models.JSONField(help_text='The conditions that are compared from then on, as a list of objects; empty where no condition varied.', null=True)),
                ('n_complete', models.PositiveIntegerField(help_text='Complete agents that it was chosen from.')),
                ('n_tasks', models.PositiveIntegerField(help_text='Active tasks it was chosen from.')),
                ('reason', models.TextField()),
                ('fixed_at', models.DateTimeField(help_text='When that was.')),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='subsets', to='catalog.benchmark')),
                ('policy', models.ForeignKey(help_text='In force when it was fixed.', on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'number'), name='tasksubset_number_once'), models.CheckConstraint(condition=models.Q(('hi__lte', 1), ('lo__gte', 0), ('lo__lt', models.F('hi'))), name='tasksubset_band_in_order'), models.CheckConstraint(condition=models.Q(('chosen_from__len', models.F('n_complete')), ('n_complete__gte', 5)), name='tasksubset_enough_agents'), models.CheckConstraint(condition=models.Q(('strategy__in', ['mid_range', 'greedy', 'random', 'easiest', 'hardest', 'stratified', 'information', 'spread', 'forecast'])), name='tasksubset_strategy_known')],
            },
        ),
        migrations.CreateModel(
            name='SubsetTask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pass_rate', models.FloatField(help_text='When it was chosen.')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='catalog.task')),
                ('subset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='members', to='studies.tasksubset')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('subset', 'task'), name='subsettask_once'), models.CheckConstraint(condition=models.Q(('pass_rate__range', (0, 1))), name='subsettask_pass_rate_range')],
            },
        ),
        migrations.CreateModel(
            name='DriftCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.CharField(help_text='SHA-256 of what the policy says of numbers.', max_length=64)),
                ('data_version', models.BigIntegerField()),
                ('estimator_version', models.PositiveIntegerField()),
                ('result', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='%(class)s_set', to='catalog.benchmark')),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
                ('subset', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='drift_checks', to='studies.tasksubset')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'rules', 'subset', 'data_version', 'estimator_version'), name='driftcheck_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Calibration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('data_version', models.BigIntegerField(help_text='Reached with the delivery that it was fitted at.')),
                ('active', models.CharField(help_text='SHA-256 of the ids of the active tasks.', max_length=64)),
                ('estimator_version', models.PositiveIntegerField()),
                ('estimator', models.CharField(choices=[('completion', 'Completion'), ('ridge', 'Ridge'), ('line', 'Line')], max_length=16)),
                ('n_agents', models.PositiveIntegerField(help_text='Complete agents it was fitted to.')),
                ('agents', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Their ids, by name.', size=None)),
                ('dates', django.contrib.postgres.fields.ArrayField(base_field=models.DateField(null=True), help_text='Theirs, as stated then.', size=None)),
                ('tasks', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), help_text='Ids of the active tasks of the subset, by name.', size=None)),
                ('residuals', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(null=True), help_text='Leave-one-agent-out, selection repeated; empty where the fold gave no prediction.', size=None)),
                ('scaffold_residuals', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(null=True), help_text='Leave-one-scaffold-out; empty likewise.', size=None)),
                ('in_time', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(null=True), help_text='Each agent predicted from those of strictly earlier dates; empty likewise.', size=None)),
                ('ridge', models.JSONField(help_text='Intercept, coefficients and means of the columns; null where it is no `ridge`.', null=True)),
                ('policy', models.ForeignKey(help_text='In force at the delivery that it was fitted at.', on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
                ('subset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calibrations', to='studies.tasksubset')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('subset', 'data_version', 'active', 'estimator_version'), name='calibration_once'), models.CheckConstraint(condition=models.Q(('agents__len', models.F('n_agents')), ('dates__len', models.F('n_agents')), ('in_time__len', models.F('n_agents')), ('residuals__len', models.F('n_agents')), ('scaffold_residuals__len', models.F('n_agents'))), name='calibration_lengths_agree')],
            },
        ),
        migrations.CreateModel(
            name='ValidationStudy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.CharField(help_text='SHA-256 of what the policy says of numbers.', max_length=64)),
                ('data_version', models.BigIntegerField()),
                ('estimator_version', models.PositiveIntegerField()),
                ('result', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='%(class)s_set', to='catalog.benchmark')),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'rules', 'data_version', 'estimator_version'), name='validationstudy_once')],
            },
        ),
        migrations.CreateModel(
            name='VarianceStudy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.CharField(help_text='SHA-256 of what the policy says of numbers.', max_length=64)),
                ('data_version', models.BigIntegerField()),
                ('estimator_version', models.PositiveIntegerField()),
                ('result', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='%(class)s_set', to='catalog.benchmark')),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'rules', 'data_version', 'estimator_version'), name='variancestudy_once')],
            },
        ),
        migrations.CreateModel(
            name='StagedStudy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.CharField(help_text='SHA-256 of what the policy says of numbers.', max_length=64)),
                ('data_version', models.BigIntegerField()),
                ('estimator_version', models.PositiveIntegerField()),
                ('result', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='%(class)s_set', to='catalog.benchmark')),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.policy')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'rules', 'data_version', 'estimator_version'), name='stagedstudy_once')],
            },
        ),
        migrations.AddField(
            model_name='TaskSubset',
            name='tasks',
            field=models.ManyToManyField(related_name='subsets', through='studies.SubsetTask', to='catalog.task'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='stagedstudy',
            trigger=pgtrigger.compiler.Trigger(name='study_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='078ad8c22138976706e378092af8bbdcad701161', operation='UPDATE OR DELETE', pgid='pgtrigger_study_is_append_only_62acd', table='studies_stagedstudy', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='tasksubset',
            trigger=pgtrigger.compiler.Trigger(name='tasksubset_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='3d4d486d1b96efa86892ef78d84076c53bcb7893', operation='UPDATE OR DELETE', pgid='pgtrigger_tasksubset_is_append_only_d905d', table='studies_tasksubset', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='subsettask',
            trigger=pgtrigger.compiler.Trigger(name='subsettask_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='7a239579a795bae870f145e8c427ccb9550a8e51', operation='UPDATE OR DELETE', pgid='pgtrigger_subsettask_is_append_only_007b5', table='studies_subsettask', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='driftcheck',
            trigger=pgtrigger.compiler.Trigger(name='study_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='a815c93d90c0f591280da9b77894f5343f2cfac7', operation='UPDATE OR DELETE', pgid='pgtrigger_study_is_append_only_b505f', table='studies_driftcheck', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='calibration',
            trigger=pgtrigger.compiler.Trigger(name='calibration_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='c625519c007139e4ccbcfdc1133afbbbe829ab2f', operation='UPDATE OR DELETE', pgid='pgtrigger_calibration_is_append_only_2168e', table='studies_calibration', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='validationstudy',
            trigger=pgtrigger.compiler.Trigger(name='study_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='650bdc23669e9d313e436f768ce9aa60bea5d01c', operation='UPDATE OR DELETE', pgid='pgtrigger_study_is_append_only_0d8d6', table='studies_validationstudy', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='variancestudy',
            trigger=pgtrigger.compiler.Trigger(name='study_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='c75f1e86f9f97bb3c749dbe2c2061c7bfacd4b06', operation='UPDATE OR DELETE', pgid='pgtrigger_study_is_append_only_19ea4', table='studies_variancestudy', when='BEFORE')),
        ),
    ]
