# docker build -t breakwater .
# docker run -p 8787:8787 -v breakwater:/data -e OPENAI_API_KEY -e GATEWAY_AUTH__KEYS='[{key: choose-one}]' breakwater
#
# The container listens on every address, so it refuses to start without a key of its own (or `serve --insecure`).
# A configuration file: -v ./config.yaml:/etc/breakwater.yaml:ro -e GATEWAY_CONFIG=/etc/breakwater.yaml

FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY gateway ./gateway
RUN python -m venv /opt/gateway \
    && /opt/gateway/bin/pip install --no-cache-dir --disable-pip-version-check '.[postgres]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home gateway \
    && install --directory --owner gateway --mode 0700 /data
COPY --from=build /opt/gateway /opt/gateway
ENV PATH=/opt/gateway/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GATEWAY_SERVER__HOST=0.0.0.0 \
    GATEWAY_SERVER__PORT=8787 \
    GATEWAY_DATA_DIR=/data
USER gateway
WORKDIR /home/gateway
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["python", "-c", \
    "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"GATEWAY_SERVER__PORT\"]}/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["gateway"]
CMD ["serve"]
