from typing import ClassVar

import pghistory
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now


class Users(BaseUserManager):
    def create_user(self, email: str, password: str | None = None, **fields: object) -> "User":
        user = User(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: object) -> "User":
        """Open an account that operates everything; made by a command, its address counts as confirmed."""
        from allauth.account.models import EmailAddress  # its tables come after this one

        user = self.create_user(email, password, is_staff=True, is_superuser=True, **fields)
        EmailAddress.objects.using(self._db).create(user=user, email=user.email, verified=True, primary=True)
        return user


class User(AbstractBaseUser, PermissionsMixin):
    """A person. Jobs act through a person's token."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=255, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False, help_text="May operate every benchmark.")
    joined_at = models.DateTimeField(db_default=Now())
    told_by_mail = models.BooleanField(
        default=False, help_text="Of review, refusal and changed ranks of one's agents."
    )

    objects = Users()
    USERNAME_FIELD = "email"

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(email=Lower("email")), name="user_email_is_lower_case")
        ]

    def __str__(self) -> str:
        return self.email


class Scope(models.TextChoices):
    READ = "read"
    SUBMIT = "submit"
    OPERATE = "operate"


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pghistory.AnyChange("revoked_at", "scopes", "benchmarks", "expires_at")),
    fields=["user", "name", "public_id", "scopes", "benchmarks", "expires_at", "revoked_at"],
    model_name="ApiTokenChange",
)
class ApiToken(models.Model):
    """A secret that lets a job act for its owner; only its hash is kept, also when expired or revoked."""

    user = models.ForeignKey(User, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=255)
    public_id = models.CharField(max_length=12, unique=True)
    sha256 = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope))
    # Slugs, for a benchmark stands above accounts; a slug never changes.
    benchmarks = ArrayField(
        models.SlugField(max_length=100), default=list, blank=True, help_text="Empty: all of its owner's."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the hour.")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=Scope.values) & ~Q(scopes=[]), name="apitoken_scopes_known"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=models.F("created_at")), name="apitoken_expires_after_creation"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} (bst_{self.public_id}…)"


class Counted(models.Model):
    """A row of the cache that all processes share; see `accounts.counting`."""

    key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField(help_text="JSON.")
    expires_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["expires_at"], name="counted_by_end")]

    def __str__(self) -> str:
        return self.key


def has_confirmed_address(user: User) -> bool:
    """Whether mail to the account has reached its owner."""
    from allauth.account.models import EmailAddress  # its tables come after those of accounts

    return EmailAddress.objects.filter(user=user, verified=True).exists()
