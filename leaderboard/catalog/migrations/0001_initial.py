import django.core.validators
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
        ('accounts', '0001_initial'),
        ('pghistory', '0007_auto_20250421_0444'),
    ]

    operations = [
        migrations.CreateModel(
            name='Benchmark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='Part of every address; cannot be changed.', max_length=100, unique=True)),
                ('title', models.CharField(max_length=255)),
                ('description', models.TextField(blank=True)),
                ('url', models.URLField(blank=True, help_text='Where the benchmark is described.', max_length=2000)),
                ('licence', models.CharField(blank=True, help_text='Of its outcomes.', max_length=255)),
                ('citation', models.TextField(blank=True, help_text='How to cite it.')),
                ('unit', models.CharField(default='% passed', help_text='Of a score.', max_length=255)),
                ('visibility', models.CharField(choices=[('public', 'Public'), ('unlisted', 'Unlisted'), ('private', 'Private')], default='public', max_length=16)),
                ('frozen_at', models.DateTimeField(blank=True, help_text='No submission is accepted since this time.', null=True)),
                ('frozen_reason', models.TextField(blank=True)),
                ('hidden_at', models.DateTimeField(blank=True, help_text='Only members see the benchmark since this time.', null=True)),
                ('hidden_reason', models.TextField(blank=True)),
                ('full_runs_only_at', models.DateTimeField(blank=True, help_text='Every agent runs all tasks since this time.', null=True)),
                ('full_runs_only_reason', models.TextField(blank=True)),
                ('replay', models.JSONField(blank=True, help_text='Of a stored replay: its source (`of`, `board`) and results. The scheduler skips replays.', null=True)),
                ('data_version', models.BigIntegerField(default=0, help_text='Grows by one when counted results or active tasks change.')),
                ('shown_version', models.BigIntegerField(default=0, help_text='Grows by one when anything else on a page changes.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('visibility__in', ['public', 'unlisted', 'private'])), name='benchmark_visibility_known'), models.CheckConstraint(condition=models.Q(('data_version__gte', 0), ('shown_version__gte', 0)), name='benchmark_versions_not_negative'), models.CheckConstraint(condition=models.Q(models.Q(('frozen_at__isnull', True), ('frozen_reason', '')), models.Q(models.Q(('frozen_at__isnull', False)), models.Q(('frozen_reason', ''), _negated=True)), _connector='OR'), name='benchmark_frozen_with_reason'), models.CheckConstraint(condition=models.Q(models.Q(('hidden_at__isnull', True), ('hidden_reason', '')), models.Q(models.Q(('hidden_at__isnull', False)), models.Q(('hidden_reason', ''), _negated=True)), _connector='OR'), name='benchmark_hidden_with_reason'), models.CheckConstraint(condition=models.Q(models.Q(('full_runs_only_at__isnull', True), ('full_runs_only_reason', '')), models.Q(models.Q(('full_runs_only_at__isnull', False)), models.Q(('full_runs_only_reason', ''), _negated=True)), _connector='OR'), name='benchmark_full_runs_only_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='BenchmarkChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('slug', models.SlugField(db_index=False, help_text='Part of every address; cannot be changed.', max_length=100)),
                ('title', models.CharField(max_length=255)),
                ('visibility', models.CharField(choices=[('public', 'Public'), ('unlisted', 'Unlisted'), ('private', 'Private')], default='public', max_length=16)),
                ('frozen_at', models.DateTimeField(blank=True, help_text='No submission is accepted since this time.', null=True)),
                ('frozen_reason', models.TextField(blank=True)),
                ('hidden_at', models.DateTimeField(blank=True, help_text='Only members see the benchmark since this time.', null=True)),
                ('hidden_reason', models.TextField(blank=True)),
                ('full_runs_only_at', models.DateTimeField(blank=True, help_text='Every agent runs all tasks since this time.', null=True)),
                ('full_runs_only_reason', models.TextField(blank=True)),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='slug_title_visibility_frozen_at_frozen_reason_hidden_at_hidden_reason_full_runs_only_at_full_runs_only_reason_events', to='catalog.benchmark')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('viewer', 'Viewer'), ('submitter', 'Submitter'), ('operator', 'Operator')], max_length=16)),
                ('trusted', models.BooleanField(default=False, help_text='Whether the account is trusted once the invitation is accepted.')),
                ('sha256', models.BinaryField(max_length=32, unique=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('accepted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='catalog.benchmark')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'submitter', 'operator'])), name='invitation_role_known'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at'))), name='invitation_expires_after_creation'), models.CheckConstraint(condition=models.Q(models.Q(('accepted_at__isnull', True), ('accepted_by__isnull', True)), models.Q(('accepted_at__isnull', False), ('accepted_by__isnull', False)), _connector='OR'), name='invitation_accepted_by_somebody')],
            },
        ),
        migrations.CreateModel(
            name='InvitationChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('role', models.CharField(choices=[('viewer', 'Viewer'), ('submitter', 'Submitter'), ('operator', 'Operator')], max_length=16)),
                ('accepted_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='benchmark_role_accepted_at_revoked_at_events', to='catalog.invitation')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('viewer', 'Viewer'), ('submitter', 'Submitter'), ('operator', 'Operator')], max_length=16)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='catalog.benchmark')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'benchmark'), name='membership_once'), models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'submitter', 'operator'])), name='membership_role_known')],
            },
        ),
        migrations.CreateModel(
            name='MembershipChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('id', models.BigIntegerField()),
                ('role', models.CharField(choices=[('viewer', 'Viewer'), ('submitter', 'Submitter'), ('operator', 'Operator')], max_length=16)),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='events', to='catalog.membership')),
                ('user', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Model',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(db_collation='C', max_length=255)),
            ],
            options={
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('name'), name='model_name_once')],
            },
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('band_lo', models.FloatField(default=0.3, help_text='Lowest pass rate of a ranking task.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                ('band_hi', models.FloatField(default=0.7, help_text='Highest pass rate of a ranking task.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                ('strategy', models.CharField(choices=[('mid_range', 'Mid Range'), ('greedy', 'Greedy'), ('random', 'Random'), ('easiest', 'Easiest'), ('hardest', 'Hardest'), ('stratified', 'Stratified'), ('information', 'Information'), ('spread', 'Spread'), ('forecast', 'Forecast')], default='mid_range', help_text='How the ranking tasks are chosen.', max_length=16)),
                ('history_window', models.PositiveIntegerField(blank=True, help_text='Pass rates use only this many of the latest agents with full runs, at least 5; empty: all.', null=True, validators=[django.core.validators.MinValueValidator(5), django.core.validators.MaxValueValidator(2147483647)])),
                ('hysteresis', models.FloatField(default=0, help_text='How far outside the band a ranking task may lie and stay one.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(0.5)])),
                ('subset_from', models.PositiveSmallIntegerField(default=15, help_text='The ranking tasks are fixed at this many complete agents (5 to 50).', validators=[django.core.validators.MinValueValidator(5), django.core.validators.MaxValueValidator(50)])),
                ('estimator', models.CharField(blank=True, choices=[('completion', 'Completion'), ('ridge', 'Ridge'), ('line', 'Line')], default='', help_text='How the full score is estimated from part of the tasks; empty: completion.', max_length=16)),
                ('refit_every', models.PositiveSmallIntegerField(default=5, help_text='The calibration is fitted again after this many complete agents (5 to 10).', validators=[django.core.validators.MinValueValidator(5), django.core.validators.MaxValueValidator(10)])),
                ('default_target', models.CharField(blank=True, choices=[('subset', 'Subset'), ('full', 'Full'), ('domain', 'Domain')], default='', help_text='Which score ranks the agents; empty: the full score, or the subset if it orders agents better.', max_length=8)),
                ('groups', models.CharField(choices=[('auto', 'Auto'), ('none', 'None'), ('category:stratum', 'Category Stratum'), ('category:cluster', 'Category Cluster'), ('group:stratum', 'Group Stratum'), ('group:cluster', 'Group Cluster')], default='auto', help_text='For the target domain: groups or categories of tasks are sampled whole (cluster) or within (stratum).', max_length=16)),
                ('missing', models.CharField(choices=[('auto', 'Auto'), ('gap', 'Gap'), ('zero', 'Zero'), ('zero_loaded', 'Zero Loaded')], default='auto', help_text='What a missing result counts as: a gap (gap), a failure (zero), or a failure only in what an operator loads (zero_loaded). The first load with five agents decides (auto).', max_length=16)),
                ('resolved_from', models.TextField(blank=True, default='', help_text='Reason, if the first load with five agents chose it.')),
                ('universe', models.JSONField(blank=True, help_text='Names of the tasks that count; `common` picks the tasks that 95% of the agents ran; empty: all.', null=True)),
                ('duplicates', models.CharField(choices=[('mean', 'Mean'), ('latest', 'Latest'), ('first', 'First')], default='mean', help_text='Which submissions of an agent count: all (their mean), the latest, or the first.', max_length=8)),
                ('counted_settings', models.JSONField(blank=True, help_text='Conditions to compare, as a list of objects with prompt_variant, judge and temperature; empty: those that the agents share.', null=True)),
                ('headline_from', models.CharField(blank=True, choices=[('self_reported', 'Self Reported'), ('logs', 'Logs'), ('verified', 'Verified')], default='', help_text='Lowest trust level of agents in headlines and badges; empty: verified, once there are five verified agents.', max_length=16)),
                ('trial_noise', models.CharField(blank=True, default='', help_text='Run-to-run noise of another benchmark as a share of p(1 − p), and its name, such as 0.118 from Terminal-Bench. Used if no agent ran a task twice; empty: an upper bound.', max_length=255)),
                ('n_trials', models.PositiveSmallIntegerField(default=1, help_text='Trials to run on each task.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(32767)])),
                ('resubmission', models.CharField(choices=[('approve', 'Approve'), ('free', 'Free')], default='approve', help_text='Whether an agent that took results back is ranked again at once or after approval.', max_length=8)),
                ('assignment', models.CharField(choices=[('subset', 'Subset'), ('staged', 'Staged'), ('full', 'Full')], default='staged', help_text='What a new agent runs: batches until its place is clear (staged), the ranking tasks (subset), or all tasks (full).', max_length=8)),
                ('podium', models.PositiveSmallIntegerField(default=3, help_text='Staged assignment: the top places; an agent stops once it cannot reach them.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)])),
                ('staged_from', models.PositiveSmallIntegerField(default=5, help_text='Staged assignment starts at this many agents.', validators=[django.core.validators.MinValueValidator(5), django.core.validators.MaxValueValidator(1000)])),
                ('draw_share', models.FloatField(blank=True, help_text='Share of stopped agents that run all tasks anyway, to check estimates; empty: a quarter until 30 full runs can be replayed, then a tenth.', null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                ('audit_share', models.FloatField(default=0.05, help_text='Share of extra tasks from outside the subset, to detect tuning.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                ('review', models.CharField(choices=[('automatic', 'Automatic'), ('manual', 'Manual')], default='automatic', help_text='Whether a submission counts at once or waits for an operator.', max_length=16)),
                ('members_only', models.BooleanField(default=True, help_text='Only members may submit.')),
                ('quota_per_account', models.PositiveIntegerField(default=100, help_text='Submissions per account and UTC day, over all its tokens.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(2147483647)])),
                ('quota_per_agent', models.PositiveIntegerField(default=20, help_text='Submissions per agent and UTC day.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(2147483647)])),
                ('backdating_days', models.PositiveIntegerField(default=30, help_text='Days that submitted_at may be before the submission.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(36500)])),
                ('assignment_days', models.PositiveIntegerField(default=14, help_text='Days that an assignment stays open.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(36500)])),
                ('rerun_days', models.PositiveIntegerField(default=21, help_text='Days until a rerun request expires.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(36500)])),
                ('publish_every', models.PositiveIntegerField(default=60, help_text='Seconds between two public boards.')),
                ('show_costs', models.BooleanField(default=True, help_text='Visitors see costs.')),
                ('base_seed', models.BigIntegerField(default=0, help_text='Seed of every random draw.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(2147483647)])),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='catalog.benchmark')),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'number'), name='policy_number_once'), models.CheckConstraint(condition=models.Q(('band_lo__lt', models.F('band_hi'))), name='policy_band_in_order'), models.CheckConstraint(condition=models.Q(('hysteresis__lt', 0.5)), name='policy_hysteresis_below_half'), models.CheckConstraint(condition=models.Q(('band_lo__range', [0, 1])), name='policy_band_lo_allowed'), models.CheckConstraint(condition=models.Q(('band_hi__range', [0, 1])), name='policy_band_hi_allowed'), models.CheckConstraint(condition=models.Q(('strategy__in', ['mid_range', 'greedy', 'random', 'easiest', 'hardest', 'stratified', 'information', 'spread', 'forecast'])), name='policy_strategy_allowed'), models.CheckConstraint(condition=models.Q(('history_window__range', [5, 2147483647]), ('history_window__isnull', True), _connector='OR'), name='policy_history_window_allowed'), models.CheckConstraint(condition=models.Q(('hysteresis__range', [0, 0.5])), name='policy_hysteresis_allowed'), models.CheckConstraint(condition=models.Q(('subset_from__range', [5, 50])), name='policy_subset_from_allowed'), models.CheckConstraint(condition=models.Q(('estimator__in', ['completion', 'ridge', 'line', ''])), name='policy_estimator_allowed'), models.CheckConstraint(condition=models.Q(('refit_every__range', [5, 10])), name='policy_refit_every_allowed'), models.CheckConstraint(condition=models.Q(('default_target__in', ['subset', 'full', 'domain', ''])), name='policy_default_target_allowed'), models.CheckConstraint(condition=models.Q(('groups__in', ['auto', 'none', 'category:stratum', 'category:cluster', 'group:stratum', 'group:cluster'])), name='policy_groups_allowed'), models.CheckConstraint(condition=models.Q(('missing__in', ['auto', 'gap', 'zero', 'zero_loaded'])), name='policy_missing_allowed'), models.CheckConstraint(condition=models.Q(('duplicates__in', ['mean', 'latest', 'first'])), name='policy_duplicates_allowed'), models.CheckConstraint(condition=models.Q(('headline_from__in', ['self_reported', 'logs', 'verified', ''])), name='policy_headline_from_allowed'), models.CheckConstraint(condition=models.Q(('n_trials__range', [1, 32767])), name='policy_n_trials_allowed'), models.CheckConstraint(condition=models.Q(('resubmission__in', ['approve', 'free'])), name='policy_resubmission_allowed'), models.CheckConstraint(condition=models.Q(('assignment__in', ['subset', 'staged', 'full'])), name='policy_assignment_allowed'), models.CheckConstraint(condition=models.Q(('podium__range', [1, 100])), name='policy_podium_allowed'), models.CheckConstraint(condition=models.Q(('staged_from__range', [5, 1000])), name='policy_staged_from_allowed'), models.CheckConstraint(condition=models.Q(('draw_share__range', [0, 1]), ('draw_share__isnull', True), _connector='OR'), name='policy_draw_share_allowed'), models.CheckConstraint(condition=models.Q(('audit_share__range', [0, 1])), name='policy_audit_share_allowed'), models.CheckConstraint(condition=models.Q(('review__in', ['automatic', 'manual'])), name='policy_review_allowed'), models.CheckConstraint(condition=models.Q(('quota_per_account__range', [1, 2147483647])), name='policy_quota_per_account_allowed'), models.CheckConstraint(condition=models.Q(('quota_per_agent__range', [1, 2147483647])), name='policy_quota_per_agent_allowed'), models.CheckConstraint(condition=models.Q(('backdating_days__range', [0, 36500])), name='policy_backdating_days_allowed'), models.CheckConstraint(condition=models.Q(('assignment_days__range', [1, 36500])), name='policy_assignment_days_allowed'), models.CheckConstraint(condition=models.Q(('rerun_days__range', [1, 36500])), name='policy_rerun_days_allowed'), models.CheckConstraint(condition=models.Q(('base_seed__range', [0, 2147483647])), name='policy_base_seed_allowed')],
            },
        ),
        migrations.CreateModel(
            name='PolicyChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('number', models.PositiveIntegerField()),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='benchmark_number_events', to='catalog.policy')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Scaffold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(db_collation='C', max_length=255)),
            ],
            options={
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('name'), name='scaffold_name_once')],
            },
        ),
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('name', models.CharField(db_collation='C', max_length=255)),
                ('category', models.CharField(blank=True, max_length=255)),
                ('group', models.CharField(blank=True, help_text='Common source of several tasks, such as a repository.', max_length=255)),
                ('position', models.PositiveIntegerField(default=0, help_text='Order of display only.')),
                ('since', models.BigIntegerField(blank=True, help_text='Data version that added it; empty: the first.', null=True)),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('retired_reason', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tasks', to='catalog.benchmark')),
            ],
            options={
                'ordering': ['benchmark', 'name'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'name'), name='task_name_once'), models.CheckConstraint(condition=models.Q(models.Q(('retired_at__isnull', True), ('retired_reason', '')), models.Q(models.Q(('retired_at__isnull', False)), models.Q(('retired_reason', ''), _negated=True)), _connector='OR'), name='task_retired_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='TaskChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='benchmark_retired_at_events', to='catalog.task')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(db_collation='C', max_length=255)),
                ('version', models.CharField(blank=True, max_length=255)),
                ('organisation', models.CharField(blank=True, max_length=255)),
                ('weights', models.CharField(blank=True, choices=[('open', 'Open'), ('closed', 'Closed')], default='', help_text='Weights of its model: open or closed; empty: not stated.', max_length=8)),
                ('merged_version', models.BigIntegerField(blank=True, help_text='First data version of the merge.', null=True)),
                ('merged_into', models.ForeignKey(blank=True, help_text='Its results count for that agent, and no board lists it.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='merged', to='catalog.agent')),
                ('owner', models.ForeignKey(blank=True, help_text='First submitter; empty if an operator loaded it.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='agents', to=settings.AUTH_USER_MODEL)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='catalog.benchmark')),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='catalog.model')),
                ('scaffold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='catalog.scaffold')),
            ],
            options={
                'ordering': ['benchmark', 'name'],
                'constraints': [models.UniqueConstraint(models.F('benchmark'), django.db.models.functions.text.Lower('name'), name='agent_name_once'), models.CheckConstraint(condition=models.Q(models.Q(('merged_into__isnull', True), ('merged_version__isnull', True)), models.Q(('merged_into__isnull', False), ('merged_version__isnull', False)), _connector='OR'), name='agent_merged_with_version'), models.CheckConstraint(condition=models.Q(('weights__in', ['open', 'closed', ''])), name='agent_weights_allowed')],
            },
        ),
        migrations.CreateModel(
            name='AgentChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('merged_into', models.ForeignKey(blank=True, db_constraint=False, help_text='Its results count for that agent, and no board lists it.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.agent')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='benchmark_merged_into_events', to='catalog.agent')),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AgentAlias',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(db_collation='C', max_length=255)),
                ('reason', models.TextField()),
                ('at', models.DateTimeField()),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='aliases', to='catalog.agent')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.benchmark')),
            ],
            options={
                'constraints': [models.UniqueConstraint(models.F('benchmark'), django.db.models.functions.text.Lower('name'), name='agentalias_name_once'), models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='agentalias_with_reason')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='benchmark',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "catalog_benchmarkchange" ("frozen_at", "frozen_reason", "full_runs_only_at", "full_runs_only_reason", "hidden_at", "hidden_reason", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "slug", "title", "visibility") VALUES (NEW."frozen_at", NEW."frozen_reason", NEW."full_runs_only_at", NEW."full_runs_only_reason", NEW."hidden_at", NEW."hidden_reason", _pgh_attach_context(), NOW(), \'insert\', NEW."id", NEW."slug", NEW."title", NEW."visibility"); RETURN NULL;', hash='9ce29a3a8b0cfa024035d7717a499873f2c75bab', operation='INSERT', pgid='pgtrigger_insert_insert_1212a', table='catalog_benchmark', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='benchmark',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."frozen_at" IS DISTINCT FROM (NEW."frozen_at") OR OLD."frozen_reason" IS DISTINCT FROM (NEW."frozen_reason") OR OLD."full_runs_only_at" IS DISTINCT FROM (NEW."full_runs_only_at") OR OLD."full_runs_only_reason" IS DISTINCT FROM (NEW."full_runs_only_reason") OR OLD."hidden_at" IS DISTINCT FROM (NEW."hidden_at") OR OLD."hidden_reason" IS DISTINCT FROM (NEW."hidden_reason") OR OLD."title" IS DISTINCT FROM (NEW."title") OR OLD."visibility" IS DISTINCT FROM (NEW."visibility"))', func='INSERT INTO "catalog_benchmarkchange" ("frozen_at", "frozen_reason", "full_runs_only_at", "full_runs_only_reason", "hidden_at", "hidden_reason", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "slug", "title", "visibility") VALUES (NEW."frozen_at", NEW."frozen_reason", NEW."full_runs_only_at", NEW."full_runs_only_reason", NEW."hidden_at", NEW."hidden_reason", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."slug", NEW."title", NEW."visibility"); RETURN NULL;', hash='5a750c11b10bf83e146e85a010827a68e26bebe5', operation='UPDATE', pgid='pgtrigger_update_update_05f5e', table='catalog_benchmark', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='agentchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='9c1d1522f8d8fdbf71f4b8cdf891d6a84355ebc3', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_85e70', table='catalog_agentchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='benchmarkchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='bf975e218495a9afffc9e4b6edf8f760291ddbb3', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_faa26', table='catalog_benchmarkchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='invitation',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "catalog_invitationchange" ("accepted_at", "benchmark_id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "revoked_at", "role") VALUES (NEW."accepted_at", NEW."benchmark_id", _pgh_attach_context(), NOW(), \'insert\', NEW."id", NEW."revoked_at", NEW."role"); RETURN NULL;', hash='3fef42d9fef2478533b9ae3fd9a659cb0e67a679', operation='INSERT', pgid='pgtrigger_insert_insert_23a59', table='catalog_invitation', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='invitation',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."accepted_at" IS DISTINCT FROM (NEW."accepted_at") OR OLD."benchmark_id" IS DISTINCT FROM (NEW."benchmark_id") OR OLD."revoked_at" IS DISTINCT FROM (NEW."revoked_at") OR OLD."role" IS DISTINCT FROM (NEW."role"))', func='INSERT INTO "catalog_invitationchange" ("accepted_at", "benchmark_id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "revoked_at", "role") VALUES (NEW."accepted_at", NEW."benchmark_id", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."revoked_at", NEW."role"); RETURN NULL;', hash='5356837854d921f5c867dd82a69d3173b61f357a', operation='UPDATE', pgid='pgtrigger_update_update_a14bd', table='catalog_invitation', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='invitationchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='882bd042660ed6456c7700bfc920bfff8814a098', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_5e5bf', table='catalog_invitationchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "catalog_membershipchange" ("benchmark_id", "id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "role", "user_id") VALUES (NEW."benchmark_id", NEW."id", _pgh_attach_context(), NOW(), \'insert\', NEW."id", NEW."role", NEW."user_id"); RETURN NULL;', hash='d48aba0ed9d2e09d812adab5ec5b19c6243e6396', operation='INSERT', pgid='pgtrigger_insert_insert_7e5fb', table='catalog_membership', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD.* IS DISTINCT FROM NEW.*)', func='INSERT INTO "catalog_membershipchange" ("benchmark_id", "id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "role", "user_id") VALUES (NEW."benchmark_id", NEW."id", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."role", NEW."user_id"); RETURN NULL;', hash='d0f4879eb6bdd3b564bcc46d735d3fd30d0c61fd', operation='UPDATE', pgid='pgtrigger_update_update_7627c', table='catalog_membership', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='delete_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "catalog_membershipchange" ("benchmark_id", "id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "role", "user_id") VALUES (OLD."benchmark_id", OLD."id", _pgh_attach_context(), NOW(), \'delete\', OLD."id", OLD."role", OLD."user_id"); RETURN NULL;', hash='f6b0efbf58a3f1948c0f6115e0ec620d69c29115', operation='DELETE', pgid='pgtrigger_delete_delete_35b6d', table='catalog_membership', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membershipchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='7c93b3f73870f1f97bb5146b3896491401a2c659', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_5e248', table='catalog_membershipchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='policy',
            trigger=pgtrigger.compiler.Trigger(name='policy_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='8cf4be44417c1715d01f22d3ada541c0fdbd4198', operation='UPDATE OR DELETE', pgid='pgtrigger_policy_is_append_only_e6a88', table='catalog_policy', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='policy',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "catalog_policychange" ("benchmark_id", "number", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."benchmark_id", NEW."number", _pgh_attach_context(), NOW(), \'insert\', NEW."id"); RETURN NULL;', hash='ca65b0c63ab311931e77603e60a85030d3ef5e62', operation='INSERT', pgid='pgtrigger_insert_insert_f3d35', table='catalog_policy', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='policychange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='80c093bceac3dc0b664b643c9c4b6cdb4bbbe82b', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_5b21d', table='catalog_policychange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='agent',
            trigger=pgtrigger.compiler.Trigger(name='renamed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."name" IS DISTINCT FROM (NEW."name"))', func='INSERT INTO "catalog_agentchange" ("benchmark_id", "merged_into_id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."benchmark_id", NEW."merged_into_id", _pgh_attach_context(), NOW(), \'renamed\', NEW."id"); RETURN NULL;', hash='69c4d7611171da35a48a0ef61c8a1054355a4a56', operation='UPDATE', pgid='pgtrigger_renamed_update_55a0d', table='catalog_agent', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='agent',
            trigger=pgtrigger.compiler.Trigger(name='merged_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."merged_into_id" IS DISTINCT FROM (NEW."merged_into_id"))', func='INSERT INTO "catalog_agentchange" ("benchmark_id", "merged_into_id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."benchmark_id", NEW."merged_into_id", _pgh_attach_context(), NOW(), \'merged\', NEW."id"); RETURN NULL;', hash='f87d0e965e0804be928316e25448d23ce54dc5d2', operation='UPDATE', pgid='pgtrigger_merged_update_45c08', table='catalog_agent', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='task',
            trigger=pgtrigger.compiler.Trigger(name='task_is_never_deleted', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='78abb7309d9faa03436dbdccd8d4a4c49d943f02', operation='DELETE', pgid='pgtrigger_task_is_never_deleted_eef9a', table='catalog_task', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='task',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."retired_at" IS DISTINCT FROM (NEW."retired_at"))', func='INSERT INTO "catalog_taskchange" ("benchmark_id", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "retired_at") VALUES (NEW."benchmark_id", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."retired_at"); RETURN NULL;', hash='755b9e199469322f91bfa3e76ba605c6b39f8f1c', operation='UPDATE', pgid='pgtrigger_update_update_db6cc', table='catalog_task', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='taskchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='1324d870d5378e8159c6177a0cebc5d23f575e49', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_2c890', table='catalog_taskchange', when='BEFORE')),
        ),
    ]
