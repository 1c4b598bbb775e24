package install_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kctl/test/harness"
)

// threeClasses are pods of the three quality-of-service classes.
const threeClasses = `
for class in 'guaranteed {limits: {cpu: 500m, memory: 64Mi}}' \
	'burstable {requests: {cpu: 250m, memory: 32Mi}, limits: {memory: 128Mi}}' \
	'besteffort {}'; do
	kctl apply -f - <<end
apiVersion: v1
kind: Pod
metadata: {name: ${class%% *}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: kctl.local/demo, imagePullPolicy: Never, resources: ${class#* }}
end
done
`

// systemdSlices switches containerd and the kubelet to control groups made by
// systemd. The machine keeps this setting.
func systemdSlices(m *machine) {
	m.do("kctl", "delete", "pod", "web", "--timeout=120s")
	config := m.path("/etc/containerd/config.toml")
	text := read(m.t, config) + `
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
`
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.do("systemctl", "restart", "containerd")
	m.do("systemctl", "restart", "kctl-kubelet") // its own configuration does not name the driver: the runtime tells it
	m.becomes("kctl-kubelet", "ActiveState", "active")
	m.sh(threeClasses)
	slice := map[string]string{}
	for class, above := range map[string]string{"guaranteed": "kubepods", "burstable": "kubepods-burstable", "besteffort": "kubepods-besteffort"} {
		m.do("kctl", "wait", "pod/"+class, "--for=condition=Ready", "--timeout=120s")
		uid := m.do("kctl", "get", "pod", class, "-o", "jsonpath={.metadata.uid}")
		slice[class] = above + "-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
		m.becomes(slice[class], "ActiveState", "active")
		m.holds(class, slice[class])
	}
	m.limits(slice["guaranteed"], "cpu.shares=512", "cpu.cfs_quota_us=50000", "memory.limit_in_bytes=67108864")
	m.limits(slice["burstable"], "cpu.shares=256", "cpu.cfs_quota_us=-1", "memory.limit_in_bytes=134217728")
	m.limits(slice["besteffort"], "cpu.shares=2", "cpu.cfs_quota_us=-1")
	if got := m.show(slice["guaranteed"], "CPUQuotaPerSecUSec"); got != "500ms" {
		m.t.Errorf("systemd's own limit is %s", got)
	}
	if got := m.do("kctl", "get", "--raw", "/api/v1/nodes/node-1/proxy/configz"); !strings.Contains(got, `"cgroupDriver":"systemd"`) {
		m.t.Errorf("the kubelet does not show its driver: %s", got)
	}

	m.resizes(slice["burstable"])
	m.staysAndGoes(slice)
	m.do("kctl", "run", "web", "--image=kctl.local/demo", "--image-pull-policy=Never", "--port=8080")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
}

// holds checks that the pod's container is a scope in the pod's slice.
func (m *machine) holds(pod, slice string) {
	m.t.Helper()
	id := strings.TrimPrefix(m.do("kctl", "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}"), "containerd://")
	scope := "cri-containerd-" + id + ".scope"
	if got := m.show(scope, "ControlGroup"); !strings.HasSuffix(got, "/"+slice+"/"+scope) {
		m.t.Errorf("the container of %s is in %q", pod, got)
	}
}

// limits checks files of a slice's group, each given as NAME=VALUE.
func (m *machine) limits(slice string, want ...string) {
	m.t.Helper()
	at := m.show(slice, "ControlGroup")
	for _, w := range want {
		file, value, _ := strings.Cut(w, "=")
		controller, _, _ := strings.Cut(file, ".")
		if got := strings.TrimSpace(m.do("cat", filepath.Join("/sys/fs/cgroup", controller, at, file))); got != value {
			m.t.Errorf("%s of %s is %s, want %s", file, slice, got, value)
		}
	}
}

// resizes changes the resources of the pod that runs in the slice.
func (m *machine) resizes(slice string) {
	const started = "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}"
	was := m.do("kctl", "get", "pod", "burstable", "-o", started)
	m.do("kctl", "patch", "pod", "burstable", "--subresource=resize", "-p",
		`{"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "96Mi"}}}]}}`)
	m.do("kctl", "wait", "pod/burstable", "--for=jsonpath={.status.containerStatuses[0].resources.requests.cpu}=500m", "--timeout=120s")
	harness.Eventually(m.t, patience, func() error { // the pod's limit is lowered after the containers'
		if got := m.show(slice, "MemoryLimit"); got != "100663296" {
			return fmt.Errorf("the slice's limit is %s", got)
		}
		return nil
	})
	m.limits(slice, "cpu.shares=512", "memory.limit_in_bytes=100663296")
	if now := m.do("kctl", "get", "pod", "burstable", "-o", started); now != was {
		m.t.Errorf("resized in place, the container was %s and is %s", was, now)
	}
}

// staysAndGoes restarts the programs under running pods: their slices stay
// until the pods are deleted.
func (m *machine) staysAndGoes(slice map[string]string) {
	const containers = `jsonpath={range .items[*]}{.metadata.name}:{.status.containerStatuses[0].containerID}:{.status.containerStatuses[0].restartCount} {end}`
	was := m.do("kctl", "get", "pods", "-o", containers)
	m.do("systemctl", "daemon-reload")
	for _, unit := range []string{"kctl-kubelet", "containerd", "dbus"} {
		m.do("systemctl", "restart", unit)
		m.becomes(unit, "ActiveState", "active")
	}
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "wait", "pods", "--all", "--for=condition=Ready", "--timeout=120s")
	if now := m.do("kctl", "get", "pods", "-o", containers); now != was {
		m.t.Errorf("the containers were %s and are %s", was, now)
	}
	m.limits(slice["guaranteed"], "cpu.cfs_quota_us=50000")
	m.do("systemctl", "start", "kubepods-besteffort-podnobodys.slice") // left by a pod that went while the kubelet was away
	m.do("kctl", "delete", "pods", "--all", "--timeout=120s")
	harness.Eventually(m.t, patience, func() error {
		units := m.do("systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager", "kubepods*pod*", "cri-containerd-*")
		groups := m.sh("find /sys/fs/cgroup -name '*pod*pod*' -path '*.slice*'")
		if units+groups != "" {
			return fmt.Errorf("left behind:\n%s%s", units, groups)
		}
		return nil
	})
}
