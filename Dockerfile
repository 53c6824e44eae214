# The live laboratory: docker build -t attlas . && docker run -p 8765:8765 attlas
# The address with its token is printed when it starts (docker logs).
FROM python:3.12-slim

WORKDIR /attlas
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve]" \
    && useradd --create-home --uid 1000 attlas \
    && mkdir /kept && chown attlas /kept

USER attlas
WORKDIR /home/attlas
VOLUME /kept
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen(r.Request('http://127.0.0.1:8765/health'))"]
ENTRYPOINT ["attlas", "serve", "--host", "0.0.0.0", "--keep", "/kept"]
