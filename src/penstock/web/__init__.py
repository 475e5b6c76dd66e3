# SPDX-License-Identifier: MIT
"""The dashboard: live control in a browser.

``penstock serve --web HOST:PORT`` starts it as a process of its own, so that it never
competes with the control loop for the interpreter. It speaks to the daemon through the
daemon's Unix socket, as ``penstock ctl`` does.

- `watch` asks the daemon for its status once a second, however many browsers watch;
- `pictures` draws who had which share: the last hour, the past, other policies;
- `identity` says who looks, and hence what may be seen;
- `app` answers requests, `serving` runs it with bounded connections;
- `static/` is the page: HTML, CSS and JavaScript as they are written.
"""
