# What happens on a machine whose kernel has the unified control groups only
# (TestUnifiedGroups): a node from the packages, one pod of each class, what their
# groups say. Lines that begin with "=" are what the test reads.
set -e
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root KUBECONFIG=/etc/kctl/admin.kubeconfig
trap 'echo "= status $?"' EXIT
fact() { echo "= $*"; }

fact groups "$(stat -f -c %T /sys/fs/cgroup)"
./cgroup.test >&2 && fact "the kubelet's tests of groups pass"
ip link add eth0 type dummy
ip address add 192.0.2.11/24 dev eth0
ip link set eth0 up
ip route add default dev eth0
modprobe br_netfilter
sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1

containerd config default | sed -e 's/SystemdCgroup = false/SystemdCgroup = true/' -e 's#/opt/cni/bin#/usr/lib/cni#' \
	-e 's#sandbox_image = .*#sandbox_image = "kctl.local/pause:latest"#' >/etc/containerd/config.toml
mkdir -p /etc/cni/net.d
cat >/etc/cni/net.d/10-pods.conflist <<'end'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.85.0.0/24"}]]}}]}
end
echo 'KUBELET_FLAGS=--image-gc-high-threshold=100 --eviction-hard=memory.available<50Mi --config-dir=/etc/kubelet.d' >/etc/default/kctl-kubelet
mkdir /etc/kubelet.d
cat >/etc/kubelet.d/memory.conf <<'end'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
memoryThrottlingFactor: 0.5
memoryReservationPolicy: TieredReservation
end
systemctl restart containerd
for image in *.tar; do ctr -n k8s.io images import "$image" >/dev/null; done

kctl pki init --advertise-address=192.0.2.11 >/dev/null
systemctl enable --now kctl-etcd kctl-apiserver kctl-scheduler
kctl token create --print-join-command >join
sh ./join
until kctl get node "$(hostname)" >/dev/null 2>&1; do sleep 1; done
kctl wait "node/$(hostname)" --for=condition=Ready --timeout=900s

. ./classes.sh

# group POD is the place of the pod's control group.
group() {
	uid=$(kctl get pod "$1" -o 'jsonpath={.metadata.uid}' | tr - _)
	find /sys/fs/cgroup -type d -name "kubepods*-pod$uid.slice"
}
for pod in guaranteed burstable besteffort; do
	kctl wait "pod/$pod" --for=condition=Ready --timeout=900s
	place=$(group "$pod")
	fact "$pod" place "${place#/sys/fs/cgroup}" | sed 's/-pod[0-9a-f_]*\.slice/-podUID.slice/'
	for file in cpu.weight cpu.max memory.max; do fact "$pod" "$file" "$(cat "$place/$file")"; done
	id=$(kctl get pod "$pod" -o 'jsonpath={.status.containerStatuses[0].containerID}')
	scope=$place/cri-containerd-${id#containerd://}.scope
	[ -d "$scope" ] && fact "$pod" scope
	for file in memory.min memory.low memory.high; do fact "$pod" "$file" "$(cat "$place/$file")" "$(cat "$scope/$file")"; done
done
for place in kubepods.slice kubepods.slice/kubepods-burstable.slice; do
	fact "${place##*/}" protects "$(cat "/sys/fs/cgroup/$place/memory.min")" "$(cat "/sys/fs/cgroup/$place/memory.low")"
done

kctl patch pod burstable --subresource=resize -p \
	'{"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "96Mi"}}}]}}'
kctl wait pod/burstable '--for=jsonpath={.status.containerStatuses[0].resources.requests.cpu}=500m' --timeout=900s
place=$(group burstable)
until [ "$(cat "$place/memory.max")" = 100663296 ]; do sleep 1; done
fact resized memory.max "$(cat "$place/memory.max")"
id=$(kctl get pod burstable -o 'jsonpath={.status.containerStatuses[0].containerID}')
fact resized memory.high "$(cat "$place/cri-containerd-${id#containerd://}.scope/memory.high")"
fact resized restarts "$(kctl get pod burstable -o 'jsonpath={.status.containerStatuses[0].restartCount}')"

kctl certificate approve $(kctl get csr -o name) >/dev/null
kctl get --raw "/api/v1/nodes/$(hostname)/proxy/stats/summary" >summary
fact measured "$(grep -c '"workingSetBytes": *[1-9]' summary)"
cat summary >&2

kctl delete pods --all --timeout=900s
until [ -z "$(find /sys/fs/cgroup -name 'kubepods*-pod*')" ]; do sleep 1; done
until [ "$(cat /sys/fs/cgroup/kubepods.slice/memory.min)" = 0 ]; do sleep 1; done
fact nothing left
