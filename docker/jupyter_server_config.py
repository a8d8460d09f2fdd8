"""Settings of the Jupyter server in the environments that install.sh makes, and of the tests in a browser."""

c = get_config()  # noqa: F821 (Jupyter defines it)

# Milliseconds that the server waits for a page to answer a ping, which the page does after the outputs that it was sent
# before. By default the server closes the connection after 90 s, and outputs on their way are lost; on a busy machine, a
# page may be further behind.
c.ServerApp.tornado_settings = {"ws_ping_timeout": 600_000}
