import django.contrib.postgres.fields
import django.db.models.deletion
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
        ('studies', '0001_initial'),
        ('submissions', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Dispute',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('board_number', models.PositiveIntegerField(null=True)),
                ('text', models.TextField()),
                ('contact', models.EmailField(blank=True, max_length=254)),
                ('created_at', models.DateTimeField()),
                ('decided_at', models.DateTimeField(null=True)),
                ('decided_reason', models.TextField(blank=True)),
                ('upheld', models.BooleanField(null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='disputes', to='catalog.agent')),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='disputes', to='catalog.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('decided_at__isnull', True), ('upheld__isnull', True)), models.Q(('decided_at__isnull', False), ('upheld__isnull', False), models.Q(('decided_reason', ''), _negated=True)), _connector='OR'), name='dispute_decided_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(help_text='agent or account', max_length=16)),
                ('tombstone', models.CharField(max_length=255)),
                ('reason', models.TextField()),
                ('at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='erasures', to='catalog.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='erasure_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('kind', models.CharField(choices=[('submission.accepted', 'Submission Accepted'), ('submission.refused', 'Submission Refused'), ('board.published', 'Board Published'), ('rank.changed', 'Rank Changed'), ('subset.activated', 'Subset Activated'), ('drift.alert', 'Drift Alert'), ('rerun.requested', 'Rerun Requested')], max_length=32)),
                ('about', models.CharField(help_text='What it is of: the same is never told twice.', max_length=255)),
                ('payload', models.JSONField()),
                ('at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='catalog.benchmark')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'kind', 'about'), name='event_once'), models.CheckConstraint(condition=models.Q(('kind__in', ['submission.accepted', 'submission.refused', 'board.published', 'rank.changed', 'subset.activated', 'drift.alert', 'rerun.requested'])), name='event_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='FailedAttempts',
            fields=[
                ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='failed_attempts', serialize=False, to='accounts.apitoken')),
                ('since', models.DateTimeField(help_text='When the minute began.')),
                ('n', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='JobRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=32)),
                ('lane', models.CharField(choices=[('prompt', 'Prompt'), ('long', 'Long')], max_length=16)),
                ('about', models.CharField(blank=True, help_text='What made it due: a key, so that it runs once for it.', max_length=255)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('abandoned', 'Abandoned')], default='queued', max_length=16)),
                ('reason', models.TextField(blank=True, help_text='Of whoever asked for it by hand.')),
                ('claim', models.UUIDField(help_text='Of the leader that runs it.', null=True)),
                ('created_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(null=True)),
                ('heartbeat_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('n_done', models.PositiveIntegerField(default=0)),
                ('n_total', models.PositiveIntegerField(default=0)),
                ('told', models.TextField(blank=True, help_text='What it did, in a line.')),
                ('error', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='job_runs', to='catalog.benchmark')),
                ('requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['kind', 'benchmark', '-id'], name='jobrun_latest'), models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['status'], name='jobrun_open')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['queued', 'running'])), fields=('kind', 'benchmark'), name='jobrun_one_at_a_time', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('lane__in', ['prompt', 'long']), ('status__in', ['queued', 'running', 'done', 'failed', 'abandoned'])), name='jobrun_choices_known'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'running'), _negated=True), models.Q(('claim__isnull', False), ('started_at__isnull', False)), _connector='OR'), name='jobrun_running_is_claimed')],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.URLField(max_length=2000)),
                ('secret', models.CharField(max_length=64)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('submission.accepted', 'Submission Accepted'), ('submission.refused', 'Submission Refused'), ('board.published', 'Board Published'), ('rank.changed', 'Rank Changed'), ('subset.activated', 'Subset Activated'), ('drift.alert', 'Drift Alert'), ('rerun.requested', 'Rerun Requested')], max_length=32), size=None)),
                ('created_at', models.DateTimeField()),
                ('disabled_at', models.DateTimeField(null=True)),
                ('disabled_reason', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='catalog.benchmark')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('events__contained_by', ['submission.accepted', 'submission.refused', 'board.published', 'rank.changed', 'subset.activated', 'drift.alert', 'rerun.requested']), models.Q(('events', []), _negated=True)), name='webhook_events_known')],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('parked', 'Parked')], default='waiting', max_length=16)),
                ('n_attempts', models.PositiveIntegerField(default=0)),
                ('next_at', models.DateTimeField(help_text='When it is tried next.')),
                ('first_at', models.DateTimeField(help_text='Since when it is tried; begins anew when sent again by hand.')),
                ('ended_at', models.DateTimeField(null=True)),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='operations.event')),
                ('webhook', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='operations.webhook')),
            ],
            options={
                'verbose_name': 'delivery',
                'verbose_name_plural': 'deliveries',
                'indexes': [models.Index(condition=models.Q(('status', 'waiting')), fields=['next_at'], name='delivery_due')],
                'constraints': [models.UniqueConstraint(fields=('event', 'webhook', 'email'), name='delivery_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('webhook__isnull', True), models.Q(('email', ''), _negated=True)), models.Q(('email', ''), ('webhook__isnull', False)), _connector='OR'), name='delivery_to_one_address'), models.CheckConstraint(condition=models.Q(('status__in', ['waiting', 'delivered', 'parked'])), name='delivery_status_known')],
            },
        ),
        migrations.CreateModel(
            name='NotificationAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('status', models.PositiveSmallIntegerField(help_text='HTTP status; empty: no answer.', null=True)),
                ('error', models.TextField(blank=True)),
                ('seconds', models.FloatField()),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='operations.notification')),
            ],
            options={
                'verbose_name': 'attempt',
            },
        ),
        migrations.CreateModel(
            name='NotificationChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('parked', 'Parked')], default='waiting', max_length=16)),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='status_events', to='operations.notification')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RerunRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('validation', 'Validation'), ('drift', 'Drift'), ('recall', 'Recall')], max_length=16)),
                ('status', models.CharField(choices=[('open', 'Open'), ('fulfilled', 'Fulfilled'), ('expired', 'Expired'), ('cancelled', 'Cancelled')], default='open', max_length=16)),
                ('reason', models.TextField(help_text='What it was opened for, in words.')),
                ('n_tasks', models.PositiveIntegerField(help_text='Active tasks when it was opened.')),
                ('cost_usd', models.FloatField(help_text='Of all its runs; empty: no cost is known.', null=True)),
                ('opened_at', models.DateTimeField()),
                ('deadline', models.DateTimeField()),
                ('closed_at', models.DateTimeField(null=True)),
                ('closed_reason', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rerun_requests', to='catalog.benchmark')),
                ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('opened_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('subset', models.ForeignKey(help_text='Empty: a recall.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='rerun_requests', to='studies.tasksubset')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'open'), models.Q(('kind', 'recall'), _negated=True)), fields=('benchmark', 'kind'), name='rerunrequest_one_open'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'recall'), ('subset__isnull', True)), models.Q(models.Q(('kind', 'recall'), _negated=True), ('subset__isnull', False)), _connector='OR'), name='rerunrequest_recall_has_no_subset'), models.CheckConstraint(condition=models.Q(('kind__in', ['validation', 'drift', 'recall']), ('status__in', ['open', 'fulfilled', 'expired', 'cancelled'])), name='rerunrequest_choices_known'), models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('status', 'open')), models.Q(models.Q(('status', 'open'), _negated=True), ('closed_at__isnull', False)), _connector='OR'), name='rerunrequest_closed_when_not_open'), models.CheckConstraint(condition=models.Q(('deadline__gt', models.F('opened_at'))), name='rerunrequest_deadline_later')],
            },
        ),
        migrations.CreateModel(
            name='RerunAgent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sampled', models.BooleanField(help_text='Drawn at random; only these feed rank fidelity.')),
                ('inclusion', models.FloatField(help_text='Probability of being drawn; 1 for the others.')),
                ('why', models.TextField()),
                ('n_lacking', models.PositiveIntegerField(help_text='Tasks it lacked when it was asked.')),
                ('cost_usd', models.FloatField(null=True)),
                ('arrived_at', models.DateTimeField(help_text='When it was found to have all tasks.', null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reruns', to='catalog.agent')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='agents', to='operations.rerunrequest')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('request', 'agent'), name='rerunagent_once'), models.CheckConstraint(condition=models.Q(('inclusion__gt', 0), ('inclusion__lte', 1)), name='rerunagent_inclusion_range')],
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('monitor', models.CharField(max_length=64)),
                ('level', models.CharField(choices=[('warn', 'Warn'), ('alert', 'Alert')], help_text='The highest it reached.', max_length=8)),
                ('evidence', models.JSONField(help_text='What the monitor said, as in the latest check.')),
                ('opened_at', models.DateTimeField()),
                ('closed_at', models.DateTimeField(null=True)),
                ('closed_reason', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='alerts', to='catalog.benchmark')),
                ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('latest', models.ForeignKey(help_text='That said so last.', on_delete=django.db.models.deletion.PROTECT, related_name='+', to='studies.driftcheck')),
                ('opened_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='opened', to='studies.driftcheck')),
                ('subset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='alerts', to='studies.tasksubset')),
                ('request', models.ForeignKey(help_text='That it opened or joined.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='alerts', to='operations.rerunrequest')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at__isnull', True)), fields=('benchmark', 'subset', 'monitor'), name='alert_one_open'), models.CheckConstraint(condition=models.Q(('level__in', ['warn', 'alert'])), name='alert_level_known'), models.CheckConstraint(condition=models.Q(('closed_at__isnull', True), models.Q(('closed_reason', ''), _negated=True), _connector='OR'), name='alert_closed_with_reason')],
            },
        ),
        migrations.CreateModel(
            name='Reselection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('data_version', models.BigIntegerField(help_text='That it was computed from.')),
                ('estimator_version', models.PositiveIntegerField()),
                ('reason', models.TextField(help_text='The rule that asked for it, or the operator.')),
                ('content', models.JSONField(help_text="Variants (plain, with hysteresis): tasks, entering and leaving with pass rates then and now, figures, cost, each agent's delta.")),
                ('status', models.CharField(choices=[('proposed', 'Proposed'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('outdated', 'Outdated')], default='proposed', max_length=16)),
                ('proposed_at', models.DateTimeField()),
                ('decided_at', models.DateTimeField(null=True)),
                ('decided_reason', models.TextField(blank=True)),
                ('variant', models.CharField(blank=True, help_text='That was approved.', max_length=16)),
                ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reselections', to='operations.alert')),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reselections', to='catalog.benchmark')),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('previous', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='studies.tasksubset')),
                ('proposed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('subset', models.OneToOneField(help_text='That approval activated.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reselection', to='studies.tasksubset')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'proposed')), fields=('benchmark',), name='reselection_one_proposed'), models.CheckConstraint(condition=models.Q(('status__in', ['proposed', 'approved', 'rejected', 'outdated'])), name='reselection_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('decided_at__isnull', True), ('status', 'proposed')), models.Q(models.Q(models.Q(('status', 'proposed'), _negated=True), models.Q(('decided_reason', ''), _negated=True)), ('decided_at__isnull', False)), _connector='OR'), name='reselection_decided_with_reason'), models.CheckConstraint(condition=models.Q(models.Q(models.Q(('status', 'approved')), models.Q(('variant', ''), _negated=True), ('subset__isnull', False)), models.Q(models.Q(('status', 'approved'), _negated=True), ('subset__isnull', True)), _connector='OR'), name='reselection_approved_has_subset')],
            },
        ),
        migrations.CreateModel(
            name='ReselectionChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('status', models.CharField(choices=[('proposed', 'Proposed'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('outdated', 'Outdated')], default='proposed', max_length=16)),
                ('decided_reason', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='benchmark_status_decided_reason_events', to='operations.reselection')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('name', models.CharField(max_length=255)),
                ('content', models.BinaryField()),
                ('created_at', models.DateTimeField()),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.benchmark')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='WebhookChange',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('url', models.URLField(max_length=2000)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('submission.accepted', 'Submission Accepted'), ('submission.refused', 'Submission Refused'), ('board.published', 'Board Published'), ('rank.changed', 'Rank Changed'), ('subset.activated', 'Subset Activated'), ('drift.alert', 'Drift Alert'), ('rerun.requested', 'Rerun Requested')], max_length=32), size=None)),
                ('disabled_at', models.DateTimeField(null=True)),
                ('disabled_reason', models.TextField(blank=True)),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='catalog.benchmark')),
                ('pgh_context', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pghistory.context')),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='benchmark_url_events_disabled_at_disabled_reason_events', to='operations.webhook')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('mode', models.CharField(choices=[('subset', 'Subset'), ('full', 'Full'), ('delta', 'Delta'), ('staged', 'Staged')], max_length=16)),
                ('reason', models.TextField(help_text='Why these tasks, in words.')),
                ('tasks', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), help_text='Ids, by name, the audit tasks among them; of a staged one in the order of its batches.', size=None)),
                ('decisions', models.JSONField(default=list, help_text='Of a staged one, after each batch: estimate, error, what it was compared with, why.')),
                ('audit', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), default=list, help_text='Ids of those drawn from outside the subset.', size=None)),
                ('n_trials', models.PositiveSmallIntegerField(help_text='Asked for on each task.')),
                ('n_trials_recommended', models.PositiveSmallIntegerField(null=True)),
                ('status', models.CharField(choices=[('open', 'Open'), ('fulfilled', 'Fulfilled'), ('expired', 'Expired')], default='open', max_length=16)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='catalog.agent')),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to=settings.AUTH_USER_MODEL)),
                ('study', models.ForeignKey(help_text='That a staged one rests on.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='studies.stagedstudy')),
                ('submissions', models.ManyToManyField(help_text='That name it; late ones too.', related_name='assignments', to='submissions.submission')),
                ('subset', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='studies.tasksubset')),
                ('request', models.ForeignKey(help_text='That it answers.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='operations.rerunrequest')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'open')), fields=('agent',), name='assignment_one_open'), models.CheckConstraint(condition=models.Q(('mode__in', ['subset', 'full', 'delta', 'staged']), ('n_trials__gte', 1), ('status__in', ['open', 'fulfilled', 'expired']), ('tasks__len__gte', 1)), name='assignment_choices_known'), models.CheckConstraint(condition=models.Q(models.Q(('mode', 'staged'), ('study__isnull', False)), models.Q(models.Q(('mode', 'staged'), _negated=True), ('study', None)), _connector='OR'), name='assignment_staged_has_study'), models.CheckConstraint(condition=models.Q(('audit__contained_by', models.F('tasks'))), name='assignment_audit_among_tasks'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at'))), name='assignment_expires_later')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='erasure',
            trigger=pgtrigger.compiler.Trigger(name='erasure_is_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='3a6e7e23a226ac678b752356010fae0d9a6e8266', operation='UPDATE OR DELETE', pgid='pgtrigger_erasure_is_append_only_bf749', table='operations_erasure', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='event',
            trigger=pgtrigger.compiler.Trigger(name='event_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='4db7b8ca7ef0f9edd49752d0b5f2f07bc831e689', operation='UPDATE', pgid='pgtrigger_event_never_changes_de205', table='operations_event', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='notificationattempt',
            trigger=pgtrigger.compiler.Trigger(name='attempt_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='a0aa98afdc0c254247d571787b6b79852486fe1a', operation='UPDATE', pgid='pgtrigger_attempt_never_changes_69bef', table='operations_notificationattempt', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='notificationchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='040e8e200cb7c9f94748351a9f0f66c8ed094ac3', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_e3f1b', table='operations_notificationchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_tasks_never_change', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."agent_id" IS DISTINCT FROM (NEW."agent_id") OR OLD."asked_by_id" IS DISTINCT FROM (NEW."asked_by_id") OR OLD."audit" IS DISTINCT FROM (NEW."audit") OR OLD."created_at" IS DISTINCT FROM (NEW."created_at") OR OLD."expires_at" IS DISTINCT FROM (NEW."expires_at") OR OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."mode" IS DISTINCT FROM (NEW."mode") OR OLD."n_trials" IS DISTINCT FROM (NEW."n_trials") OR OLD."n_trials_recommended" IS DISTINCT FROM (NEW."n_trials_recommended") OR OLD."reason" IS DISTINCT FROM (NEW."reason") OR OLD."request_id" IS DISTINCT FROM (NEW."request_id") OR OLD."study_id" IS DISTINCT FROM (NEW."study_id") OR OLD."subset_id" IS DISTINCT FROM (NEW."subset_id") OR OLD."uuid" IS DISTINCT FROM (NEW."uuid"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='1d68bf60d38241f569d7385b79992f3500b83e81', operation='UPDATE', pgid='pgtrigger_assignment_tasks_never_change_97c9e', table='operations_assignment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_tasks_are_only_added', sql=pgtrigger.compiler.UpsertTriggerSql(condition="WHEN (OLD.tasks IS DISTINCT FROM NEW.tasks AND NOT (OLD.mode = 'staged' AND OLD.status = 'open' AND NEW.tasks[1:cardinality(OLD.tasks)] = OLD.tasks))", func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='d6ceaee3af3e99bed59edf70836c0784fa7f8740', operation='UPDATE', pgid='pgtrigger_assignment_tasks_are_only_added_fed8c', table='operations_assignment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_decisions_are_only_added', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NOT NEW.decisions @> OLD.decisions OR jsonb_array_length(NEW.decisions) < jsonb_array_length(OLD.decisions))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='e9515939c1b19db24b3dc5ef8f8b6591d4635e0d', operation='UPDATE', pgid='pgtrigger_assignment_decisions_are_only_added_522ad', table='operations_assignment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_is_never_deleted', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='2905eba78a76a01596b63ae7d272eb24c9fad5a3', operation='DELETE', pgid='pgtrigger_assignment_is_never_deleted_92b9d', table='operations_assignment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='reselection',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "operations_reselectionchange" ("benchmark_id", "decided_reason", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "status") VALUES (NEW."benchmark_id", NEW."decided_reason", _pgh_attach_context(), NOW(), \'insert\', NEW."id", NEW."status"); RETURN NULL;', hash='a004f54d239704201f8d59756ba1bb7c75e4cb6c', operation='INSERT', pgid='pgtrigger_insert_insert_265af', table='operations_reselection', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='reselection',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."status" IS DISTINCT FROM (NEW."status"))', func='INSERT INTO "operations_reselectionchange" ("benchmark_id", "decided_reason", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "status") VALUES (NEW."benchmark_id", NEW."decided_reason", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."status"); RETURN NULL;', hash='1401194b36a56522bc2a8e48bb3cbd6d12d832d1', operation='UPDATE', pgid='pgtrigger_update_update_090db', table='operations_reselection', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='reselectionchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='96e0247ec61f52ed6ae33f0542719370df6b0001', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_ea231', table='operations_reselectionchange', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhook',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "operations_webhookchange" ("benchmark_id", "disabled_at", "disabled_reason", "events", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (NEW."benchmark_id", NEW."disabled_at", NEW."disabled_reason", NEW."events", _pgh_attach_context(), NOW(), \'insert\', NEW."id", NEW."url"); RETURN NULL;', hash='21959a7b7ba339297dc0a34454c3c03479519f6e', operation='INSERT', pgid='pgtrigger_insert_insert_dd2a3', table='operations_webhook', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhook',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."disabled_at" IS DISTINCT FROM (NEW."disabled_at") OR OLD."events" IS DISTINCT FROM (NEW."events") OR OLD."url" IS DISTINCT FROM (NEW."url"))', func='INSERT INTO "operations_webhookchange" ("benchmark_id", "disabled_at", "disabled_reason", "events", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (NEW."benchmark_id", NEW."disabled_at", NEW."disabled_reason", NEW."events", _pgh_attach_context(), NOW(), \'update\', NEW."id", NEW."url"); RETURN NULL;', hash='83fb931d763cde22f3ff6e2f2d422da79b755ecf', operation='UPDATE', pgid='pgtrigger_update_update_73b3b', table='operations_webhook', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhook',
            trigger=pgtrigger.compiler.Trigger(name='delete_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "operations_webhookchange" ("benchmark_id", "disabled_at", "disabled_reason", "events", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (OLD."benchmark_id", OLD."disabled_at", OLD."disabled_reason", OLD."events", _pgh_attach_context(), NOW(), \'delete\', OLD."id", OLD."url"); RETURN NULL;', hash='129da101fadc71810a900be7117376c1e68ea90d', operation='DELETE', pgid='pgtrigger_delete_delete_c4cbf', table='operations_webhook', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='notification',
            trigger=pgtrigger.compiler.Trigger(name='sent_again_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."first_at" IS DISTINCT FROM (NEW."first_at"))', func='INSERT INTO "operations_notificationchange" ("pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "status") VALUES (_pgh_attach_context(), NOW(), \'sent again\', NEW."id", NEW."status"); RETURN NULL;', hash='042d9673a5e6111723158c1282243136311f5c82', operation='UPDATE', pgid='pgtrigger_sent_again_update_9e114', table='operations_notification', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhookchange',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='a88f62f26dc5aa33244d1f3e7594b3b791e4097c', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_1b5ee', table='operations_webhookchange', when='BEFORE')),
        ),
    ]
