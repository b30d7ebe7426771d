"""A report that arrives slowly, as over a weak network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, expect


@contextmanager
def in_two_parts(page: bytes, cut: int, go_on: threading.Event) -> Iterator[str]:
    """Serve `page` up to `cut`, and the rest once `go_on` is set; yield its address."""

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page[:cut])
            self.wfile.flush()
            go_on.wait(60)
            self.wfile.write(page[cut:])

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        go_on.set()
        server.shutdown()
        server.server_close()


def test_a_block_cut_in_the_middle_is_waited_for(browser: Browser, report: Path) -> None:
    """A view that needs a block whose first half is here shows it once the rest has arrived."""
    whole = report.read_bytes()
    start = whole.index(b'<script type="application/octet-stream" id="block-')
    name = whole[start:].split(b'id="', 1)[1].split(b'"', 1)[0].decode()
    end = whole.index(b"</script>", start)
    errors: list[str] = []
    go_on = threading.Event()
    with in_two_parts(whole, (start + end) // 2, go_on) as address:
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address + "#/read", wait_until="commit")
        expect(page.locator(f"#{name}")).not_to_be_empty()
        assert page.evaluate("document.readyState") == "loading"
        page.locator("header.top").wait_for()
        go_on.set()
        page.locator("a.query-line").first.wait_for()
        page.close()
    assert not errors
