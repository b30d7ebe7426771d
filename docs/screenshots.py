r"""Remake the pictures of the report in docs/images, in a real browser.

    python docs/screenshots.py REPORT.html NAME [ROUTE ...]

Without a route, pictures of the first screen at 1440 and 390 pixels, light and dark; with routes
(such as `#/compare`), one picture of each at 1440 pixels, light. The pictures in the docs are of
the recorded demo (`rocketeval init demo --recorded`, `rocketeval run demo/rocketeval.yaml`):

    python docs/screenshots.py demo/runs/recorded/report.html overview
    python docs/screenshots.py demo/runs/recorded/report.html demo \
        '#/read?q=hike-list' '#/label' '#/compare/careful/solid' '#/items' '#/charts'
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZES = {"": (1440, 1000), "-phone": (390, 844)}


def shoot(browser: Browser, address: str, file: Path, size: tuple[int, int], scheme: str) -> None:
    """Open the address and keep what the window shows."""
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page.goto(address)
    page.locator("h1").wait_for()
    page.wait_for_timeout(1000)
    page.screenshot(path=file)
    page.close()
    print(f"{file.name}  {file.stat().st_size / 1000:.0f} kB")


def main() -> None:
    report, name, *routes = sys.argv[1:]
    address = Path(report).resolve().as_uri()
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-quic"]
        )
        for suffix, size in () if routes else SIZES.items():
            for scheme in ("light", "dark"):
                shoot(browser, address, IMAGES / f"{name}-{scheme}{suffix}.png", size, scheme)
        for route in routes:
            view = route.strip("#/").partition("?")[0].split("/")[0]
            shoot(browser, address + route, IMAGES / f"{name}-{view}.png", SIZES[""], "light")
        browser.close()


if __name__ == "__main__":
    main()
