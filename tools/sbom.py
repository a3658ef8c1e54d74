"""Write the service's bill of materials (CycloneDX 1.6, JSON) from its lock: `make sbom`.

``python tools/sbom.py [LOCK] [FILE]``. Names, versions, hashes and who wants whom come from the lock;
licences from what is installed, where it is the same version.
"""

import sys
from importlib import metadata
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from locked import PROJECT, Pin, pins
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
VERSION = SchemaVersion.V1_6


def bill(lock: Path) -> Bom:
    """Every library of the lock, and which of them wants which."""
    locked = pins(lock)
    components = [component(pin) for pin in locked]
    bom = Bom(components=components, serial_number=uuid5(NAMESPACE_URL, lock.read_text(encoding="utf-8")))
    root = Component(
        name=PROJECT, type=ComponentType.APPLICATION, bom_ref=PROJECT, licenses=licences("Apache-2.0")
    )
    bom.metadata.component = root
    for wants in (PROJECT, *{pin.name for pin in locked}):
        wanted = [one for pin, one in zip(locked, components, strict=True) if wants in pin.via]
        for who in [root] if wants == PROJECT else [one for one in components if one.name == wants]:
            bom.register_dependency(who, wanted)
    return bom


def component(pin: Pin) -> Component:
    """One library; its hashes are those of the files that the lock allows."""
    purl = PackageURL("pypi", name=pin.name, version=pin.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(purl)),
        comment="the files that the lock allows",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256) for sha256 in pin.hashes],
    )
    return Component(
        name=pin.name,
        version=pin.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{pin.name}=={pin.version}",
        purl=purl,
        licenses=licences(licence_of(pin)),
        external_references=[files],
        properties=[Property(name=f"{PROJECT}:marker", value=pin.marker)] if pin.marker else [],
    )


def licence_of(pin: Pin) -> str:
    """As the library states it; empty where another version or none is installed."""
    try:
        found = metadata.metadata(pin.name)
    except metadata.PackageNotFoundError:
        return ""
    if found["Version"] != pin.version:
        return ""
    classified = [
        text.rpartition(" :: ")[2]
        for text in found.get_all("Classifier", [])
        if text.startswith("License ::")
    ]
    stated = (found.get("License-Expression") or found.get("License") or "").strip()
    return stated if stated and "\n" not in stated else " AND ".join(classified)


def licences(stated: str) -> list:
    """Turn what is stated into an expression or names of SPDX, where it is one."""
    return [LicenseFactory().make_from_string(stated)] if stated else []


def main(lock: str = "requirements.txt", file: str = f"{PROJECT}.cdx.json") -> None:
    """Write the bill and say how much it holds."""
    bom = bill(ROOT / lock)
    text = make_outputter(bom, OutputFormat.JSON, VERSION).output_as_string(indent=2)
    Path(file).write_text(f"{text}\n", encoding="utf-8")
    print(f"{file}: {len(bom.components)} libraries of {lock}")


if __name__ == "__main__":
    main(*sys.argv[1:])
