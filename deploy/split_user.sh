#!/bin/sh
# split-user: moves an installation whose daemons both ran as the user "scored" to the users scored-head and
# scored-node. Running jobs go on: the node daemon keeps the uid, to which their cgroups and sockets belong and from
# which their shepherds take orders. Does nothing on any other host.
set -eu
if ! getent passwd scored >/dev/null || getent passwd scored-node >/dev/null; then exit 0; fi
uid=$(id -u scored)
groupmod --new-name scored-node "$(id -gn scored)"
useradd --system --non-unique --uid "$uid" --gid scored-node --no-create-home --home-dir / \
  --shell /usr/sbin/nologin scored-node
systemd-sysusers /usr/lib/sysusers.d/scored.conf
# A scrun that runs already looks for the head's user under the old name when it connects again.
userdel --force scored
useradd --system --non-unique --uid "$(id -u scored-head)" --gid scored-head --no-create-home \
  --home-dir /var/lib/scored --shell /usr/sbin/nologin scored

# The rest of what the daemons own there is the head's; systemd gives it its state directory when it starts.
find /etc/scored -xdev -type f -uid "$uid" ! -name node.key -exec chown scored-head:scored-head {} +
for unit in /etc/systemd/system/scored-launcher.service.d/*.conf; do
  if [ -f "$unit" ]; then sed -i -E 's/--daemon-user(=| +)scored( |$)/--daemon-user\1scored-node\2/' "$unit"; fi
done

# Jobs know their sockets by the old paths.
install -d -o scored-node -g scored-node -m 0755 /run/scored-node
for name in shepherds commands.sock; do
  if [ ! -e "/run/scored/$name" ] || [ -L "/run/scored/$name" ]; then continue; fi
  mv "/run/scored/$name" "/run/scored-node/$name"
  ln -s "/run/scored-node/$name" "/run/scored/$name"
done
