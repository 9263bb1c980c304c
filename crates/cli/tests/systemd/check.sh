# Runs both units under this systemd, kills the server and stops them; says what it saw, a fact a line.
cd /etc/anabranch
anabranch keygen --out server.key >server.pub
anabranch keygen --out client.key >client.pub
cat >home.toml <<TOML
[interface]
private-key-file = "server.key"
listen = ["127.0.0.1:4433"]
[[peer]]
public-key = "$(cat client.pub)"
TOML
cat >away.toml <<TOML
[interface]
private-key-file = "client.key"
[[peer]]
public-key = "$(cat server.pub)"
endpoint = "127.0.0.1:4433"
local-forward = ["127.0.0.1:7000:127.0.0.1:7777"]
TOML
chown -R anabranch: .

# What comes back through the tunnel, within ten seconds.
through() {
    for _ in $(seq 50); do
        if exec 3<>/dev/tcp/127.0.0.1/7000; then
            echo "$1" >&3
            if read -r -t 2 -u 3 answer; then
                echo "answer $answer"
                return
            fi
        fi 2>/dev/null
        sleep .2
    done
    echo "answer none"
}

server=anabranch-serve@home client=anabranch-connect@away
systemctl start echo.socket "$server" "$client"
through first

# What the units say of themselves, once they have been asked to read their settings again.
reload() {
    before=$(systemctl show --property MainPID --value "$1")
    systemctl reload "$1" && echo "$1 reload $2"
    for _ in $(seq 50); do
        said=$(systemctl show --property StatusText --value "$1")
        if [ -n "$said" ] || [ "$2" = right ]; then break; fi
        sleep .1
    done
    echo "$1 says ${said:-nothing}"
    [ "$(systemctl show --property MainPID,ActiveState --value "$1" | paste -sd ' ')" = "$before active" ] && echo "$1 goes on"
}
for unit in "$server" "$client"; do
    file=${unit#*@}.toml
    cp "$file" right.toml
    echo 'endpint = "x"' >>"$file"
    reload "$unit" wrong
    cp right.toml "$file"
    reload "$unit" right
done
for unit in "$server" "$client"; do
    pid=$(systemctl show --property MainPID --value "$unit")
    echo "$unit user $(stat --format %U "/proc/$pid")"
    grep -E '^(CapPrm|CapBnd|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tr -s '\t' ' ' | sed "s/^/$unit /"
    echo "$unit limits $(systemctl show --property MemoryMax,TasksMax --value "$unit" | sort -n | paste -sd ' ')"
done
anabranch status --json | grep -o '"command":"[a-z]*"' | sort | sed 's/^/status /'
kill -9 "$(systemctl show --property MainPID --value "$server")"
through second
echo "$server restarts $(systemctl show --property NRestarts --value "$server")"
systemctl stop "$server" "$client"
for unit in "$server" "$client"; do
    echo "$unit result $(systemctl show --property Result --value "$unit")"
done
systemctl status --no-pager "$server" "$client" --lines 20 >/out/journal 2>&1
echo end
