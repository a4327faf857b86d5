#!/bin/sh
# split-user: moves an installation whose daemons both ran as the user "scored" to the users scored-head and
# scored-node. Running jobs continue: the node daemon keeps the uid, which owns their cgroups and sockets, and whose
# orders their shepherds accept. On any other host it does nothing.
set -eu
if ! getent passwd scored >/dev/null || getent passwd scored-node >/dev/null; then exit 0; fi
uid=$(id -u scored)
groupmod --new-name scored-node "$(id -gn scored)"
useradd --system --non-unique --uid "$uid" --gid scored-node --no-create-home --home-dir / \
  --shell /usr/sbin/nologin scored-node
systemd-sysusers /usr/lib/sysusers.d/scored.conf
# A running scrun looks up the head's user by the old name when it reconnects.
userdel --force scored
useradd --system --non-unique --uid "$(id -u scored-head)" --gid scored-head --no-create-home \
  --home-dir /var/lib/scored --shell /usr/sbin/nologin scored

# All other files of the daemons there belong to the head; systemd sets the owner of its state directory at the start.
find /etc/scored -xdev -type f -uid "$uid" ! -name node.key -exec chown scored-head:scored-head {} +
for unit in /etc/systemd/system/scored-launcher.service.d/*.conf; do
  if [ -f "$unit" ]; then sed -i -E 's/--daemon-user(=| +)scored( |$)/--daemon-user\1scored-node\2/' "$unit"; fi
done

# Running jobs use the old paths of their sockets.
install -d -o scored-node -g scored-node -m 0755 /run/scored-node
for name in shepherds commands.sock; do
  if [ ! -e "/run/scored/$name" ] || [ -L "/run/scored/$name" ]; then continue; fi
  mv "/run/scored/$name" "/run/scored-node/$name"
  ln -s "/run/scored-node/$name" "/run/scored/$name"
done
