# One image for the web server, the scheduler and the cluster; deploy/entrypoint.sh tells them apart.
# Nothing is written but to /tmp: run it with a read-only root (docker-compose.yml does).
# Debian 13 brings the programs of PostgreSQL 17, the version of docker-compose.yml: change both together.
FROM python:3.13-slim-trixie AS build
COPY . /src
RUN sh /src/deploy/build.sh /opt/bandstand

FROM python:3.13-slim-trixie
COPY deploy/system.sh /opt/system.sh
RUN sh /opt/system.sh
COPY --from=build /opt/bandstand /opt/bandstand
ENV PATH=/opt/bandstand/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["bandstand-entrypoint"]
CMD ["web"]
