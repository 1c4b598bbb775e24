package podruntime

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

func TestPodRunsAndEnds(t *testing.T) {
	b := newBed(t)
	pod := newPod("web", shell("main", "echo hello from $HOSTNAME; "+forever), shell("side", forever))
	var mu sync.Mutex
	var seen []*runtimestate.PodStatus
	result := b.sync(t, pod, SyncOptions{Changed: func(s *runtimestate.PodStatus) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	}})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	if len(seen) != 3 || len(seen[0].IPs) != 1 || len(seen[0].Containers) != 0 || len(seen[2].Running()) != 2 {
		t.Fatalf("heard of %d changes, want sandbox, container, container", len(seen))
	}
	if want := map[string]runtimestate.Waiting{"main": {}, "side": {}}; len(result.Waiting) != 2 || result.Waiting["main"] != want["main"] {
		t.Errorf("Waiting = %v, want %v", result.Waiting, want)
	}
	// The status that SyncPod returns is the same as the runtime's.
	asked := b.status(t, pod)
	for _, want := range asked.Containers {
		got := result.Status.ContainerByID(want.ID)
		if got == nil {
			t.Fatalf("the runtime has container %v that SyncPod does not tell of", want)
		}
		g, w := *got, *want
		g.CreatedAt, g.StartedAt = w.CreatedAt, w.StartedAt // they come from two clocks
		if !reflect.DeepEqual(g, w) {
			t.Errorf("SyncPod tells\n%+v\nand the runtime\n%+v", g, w)
		}
	}
	if !slices.Equal(asked.IPs, result.Status.IPs) || asked.Sandboxes[0].ID != result.Status.Sandboxes[0].ID {
		t.Errorf("SyncPod tells sandbox %+v, the runtime %+v", result.Status.Sandboxes[0], asked.Sandboxes[0])
	}
	// There is nothing left to do.
	if again := b.sync(t, pod, SyncOptions{}); again.Err != nil || len(again.Waiting) != 0 {
		t.Errorf("a second SyncPod did %+v", again)
	}
	pods, err := b.Pods(t.Context())
	if err != nil || len(pods) != 1 || pods[0].UID != pod.UID || len(pods[0].Containers) != 2 || len(pods[0].Sandboxes) != 1 {
		t.Fatalf("Pods = %+v, %v", pods, err)
	}
	b.until(t, pod, "heard in its log", func(*runtimestate.PodStatus) bool { return b.log(t, pod, "main", 0) == "hello from web\n" })

	if err := b.KillPod(t.Context(), pod, pods[0], nil); err != nil {
		t.Fatal(err)
	}
	ended := b.status(t, pod)
	if len(ended.Running()) != 0 || ended.ReadySandbox() != nil || !ended.Container("main").Succeeded() {
		t.Errorf("after KillPod: %s", show(ended))
	}
	if err := b.RemovePod(t.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Pods(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("after RemovePod: %v, %v", left, err)
	}
	for _, want := range []string{
		`Pulled spec.containers{main}: Container image "critest.local/busybox:1" already present on machine and can be accessed by the pod`,
		"Created spec.containers{main}: Container created", "Started spec.containers{side}: Container started",
		"Killing spec.containers{main}: Stopping container main",
	} {
		if !b.events.has(want) {
			t.Errorf("no event %q", want)
		}
	}
}

func TestCrashBackOff(t *testing.T) {
	b := newBed(t)
	pod := newPod("crash", shell("main", "echo bye > /dev/termination-log; exit 3"))
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil {
		t.Fatal(r.Err)
	}
	first := b.until(t, pod, "exited", exited("main", 0)).Container("main")
	if first.ExitCode != 3 || first.Message != "bye\n" || first.Reason != "Error" {
		t.Errorf("ended as %+v", first)
	}
	// The first restart is immediate, the second waits ten seconds.
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil || r.Waiting["main"].Reason != "" {
		t.Fatalf("first restart: %+v", r)
	}
	b.until(t, pod, "exited again", exited("main", 1))
	r := b.sync(t, pod, SyncOptions{})
	if r.Err != nil || r.RetryAfter <= 0 || r.RetryAfter > initialCrashBackOff {
		t.Fatalf("second restart: %+v", r)
	}
	want := runtimestate.Waiting{
		Reason:  runtimestate.ReasonCrashLoopBackOff,
		Message: "back-off 10s restarting failed container=main pod=crash_default(uid-crash)",
	}
	if r.Waiting["main"] != want {
		t.Errorf("waiting %+v, want %+v", r.Waiting["main"], want)
	}
	if !b.events.has("BackOff spec.containers{main}: Back-off restarting failed container main in pod crash_default(uid-crash)") {
		t.Error("no BackOff event")
	}
	resized := pod.DeepCopy() // it may have had too little
	resized.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	if r := b.sync(t, resized, SyncOptions{}); r.Err != nil || r.Waiting["main"].Reason != "" || r.Status.Container("main").RestartCount != 2 {
		t.Errorf("with more memory: %+v", r)
	}
}

// A container that can't be started backs off like one that exits at once.
func TestContainersThatCantBeStartedBackOff(t *testing.T) {
	b := newBed(t)
	pod := newPod("unstartable", shell("main", ""))
	pod.Spec.Containers[0].Command = []string{"/no/such"}
	for range 2 {
		if r := b.sync(t, pod, SyncOptions{}); r.Waiting["main"].Reason != runtimestate.ReasonRunContainer {
			t.Fatalf("a container that can't be started: %+v", r)
		}
	}
	r := b.sync(t, pod, SyncOptions{})
	if r.Waiting["main"].Reason != runtimestate.ReasonCrashLoopBackOff || r.RetryAfter <= 0 || r.RetryAfter > initialCrashBackOff {
		t.Errorf("the third time: %+v", r)
	}
}

// What a container is to run with is noted before it starts: after a kubelet's sudden end in
// between, it must not be restarted for a resize that it was started with.
func TestResourcesAreNotedBeforeTheStart(t *testing.T) {
	b := newBed(t)
	pod := newPod("unstartable", shell("main", ""))
	pod.Spec.Containers[0].Command = []string{"/no/such"}
	noted := &notedResources{}
	if r := b.sync(t, pod, SyncOptions{Resources: noted}); r.Waiting["main"].Reason != runtimestate.ReasonRunContainer || noted.applied["main"] != 1 {
		t.Errorf("%+v; noted: %v", r, noted.applied)
	}
}

// notedResources counts how often the resources of each container were noted.
type notedResources struct{ applied map[string]int }

func (n *notedResources) Actual(string) (r corev1.ResourceRequirements, known bool) { return r, false }
func (n *notedResources) PodMemoryInUse() error                                     { return nil }
func (n *notedResources) Applied(container string, _ corev1.ResourceRequirements) {
	if n.applied == nil {
		n.applied = map[string]int{}
	}
	n.applied[container]++
}

func TestInitContainersAndSidecars(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	b := newBed(t)
	pod := newPod("init", shell("main", forever))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(60)) // a shell that has only just begun may take long to hear SIGTERM
	sidecar := shell("proxy", forever)
	sidecar.RestartPolicy = &always
	pod.Spec.InitContainers = []core.Container{shell("first", "exit 0"), sidecar, shell("second", "exit 0")}
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil || len(r.Status.Containers) != 1 {
		t.Fatalf("first sync: %+v", r)
	}
	b.until(t, pod, "past the first init container", exited("first", 0))
	// Nobody waits for the sidecar, so the next container starts at once.
	r := b.sync(t, pod, SyncOptions{})
	if r.Err != nil || r.Status.Container("proxy") == nil || r.Status.Container("second") == nil || r.Status.Container("main") != nil {
		t.Fatalf("second sync: %s %v", show(r.Status), r.Err)
	}
	b.until(t, pod, "past the second init container", exited("second", 0))
	if r = b.sync(t, pod, SyncOptions{}); r.Err != nil || len(r.Status.Running()) != 2 {
		t.Fatalf("third sync: %s %v", show(r.Status), r.Err)
	}
	if err := b.KillPod(t.Context(), pod, r.Status.RunningPod(b.Name()), nil); err != nil {
		t.Fatal(err)
	}
	ended := b.status(t, pod)
	if main, proxy := ended.Container("main"), ended.Container("proxy"); proxy.FinishedAt.Before(main.FinishedAt) {
		t.Errorf("the sidecar ended at %v, before the container at %v", proxy.FinishedAt, main.FinishedAt)
	}
}

func TestContainerSeesWhatItsSpecSays(t *testing.T) {
	b := newBed(t)
	b.objects.configMaps = map[string]*core.ConfigMap{"default/settings": {Data: map[string]string{"color": "blue", "size": "9"}}}
	b.objects.secrets = map[string]*core.Secret{"default/keys": {Data: map[string][]byte{"token": []byte("s3cret")}}}
	key := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	c := shell("main", `echo $A/$B/$COLOR/$TOKEN/$CFG_size/$NAME; test "$IP" = "$(hostname -i)" && echo ip; `+
		`grep -q "^192.0.2.9.alias$" /etc/hosts && echo alias; id -u; id -g; pwd; touch /x 2>/dev/null || echo readonly; `+
		`cat /proc/sys/kernel/shm_rmid_forced; grep NoNewPrivs /proc/self/status | tr -d '\t'; echo $0 $1; id -G; `+forever)
	c.Args = []string{"zero-$(A)", "$(NAME)"}
	c.Env = []corev1.EnvVar{
		{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)2$$(A)$(NONE)"},
		{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: key("settings"), Key: "color"}}},
		{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: key("keys"), Key: "token"}}},
		{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
	}
	c.EnvFrom = []corev1.EnvFromSource{{Prefix: "CFG_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: key("settings")}}}
	c.WorkingDir = "/tmp"
	user, group, yes := int64(1000), int64(2000), true
	no, fsGroup := false, int64(3000)
	c.SecurityContext = &corev1.SecurityContext{
		RunAsUser: &user, RunAsGroup: &group, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no,
	}
	pod := newPod("spec", c)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		FSGroup: &fsGroup, SupplementalGroups: []int64{4000}, Sysctls: []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}},
	}
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"alias"}}}
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil {
		t.Fatal(r.Err)
	}
	const want = "1/12$(A)$(NONE)/blue/s3cret/9/spec\nip\nalias\n1000\n2000\n/tmp\nreadonly\n1\nNoNewPrivs:1\nzero-1 spec\n2000 3000 4000\n"
	var got string
	b.until(t, pod, "done with its script", func(*runtimestate.PodStatus) bool {
		got = b.log(t, pod, "main", 0)
		return strings.Count(got, "\n") >= strings.Count(want, "\n")
	})
	if got != want {
		t.Errorf("the container says\n%swant\n%s", got, want)
	}
}

func TestBadConfigurationsSaySo(t *testing.T) {
	var mu sync.Mutex
	counts := map[Counted]int{}
	b := newBed(t, func(c *Config) {
		c.Count = func(what Counted) {
			mu.Lock()
			defer mu.Unlock()
			counts[what]++
		}
	})
	yes, no := true, false
	cases := []struct {
		name, reason, message string
		change                func(*core.Pod)
	}{
		{"configmap", runtimestate.ReasonCreateContainerConfig, `configmaps "none" not found`, func(p *core.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}}}
		}},
		{"root", runtimestate.ReasonCreateContainerConfig, "container has runAsNonRoot and image will run as root", func(p *core.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: &yes}
		}},
		{"reference", "InvalidImageName", "couldn't parse image name", func(p *core.Pod) { p.Spec.Containers[0].Image = "UPPER:::" }},
		{"never", "ErrImageNeverPull", "is not present with pull policy of Never", func(p *core.Pod) {
			p.Spec.Containers[0].Image = "critest.local/none:1"
			p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
		}},
		{"command", runtimestate.ReasonRunContainer, "no such file or directory", func(p *core.Pod) { p.Spec.Containers[0].Command = []string{"/none"} }},
		{"device", runtimestate.ReasonCreateContainerConfig, "volumeDevices (disk) are not supported", func(p *core.Pod) {
			p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk"}}
		}},
		{"rule", runtimestate.ReasonCreateContainerConfig, "action Dance is not supported", func(p *core.Pod) {
			p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: "Dance"}}
		}},
		{"image volume", "ErrImageNeverPull", "is not present", func(p *core.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
				Reference: "critest.local/none:1", PullPolicy: corev1.PullNever,
			}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}},
		{"userns", "", "spec.hostUsers: false", func(p *core.Pod) { p.Spec.HostUsers = &no }},
		{"class", "", `runtimeClassName "gvisor"`, func(p *core.Pod) { class := "gvisor"; p.Spec.RuntimeClassName = &class }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := newPod("bad-"+c.name, shell("main", forever))
			c.change(pod)
			r := b.sync(t, pod, SyncOptions{})
			if got := r.Waiting["main"]; got.Reason != c.reason || c.reason != "" && !strings.Contains(got.Message, c.message) {
				t.Errorf("waiting %+v, want %s: %s", got, c.reason, c.message)
			}
			if c.reason == "" && (r.Err == nil || !strings.Contains(r.Err.Error(), c.message)) {
				t.Errorf("Err = %v, want %s", r.Err, c.message)
			}
			if len(r.Status.Running()) > 0 {
				t.Error("it runs nevertheless")
			}
		})
	}
	want := map[Counted]int{
		StartedPods:              len(cases),
		StartedPodsFailed:        2,
		UserNamespacedPods:       1,
		UserNamespacedPodsFailed: 1,
		ImageVolumesRequested:    1,
		ImageVolumesFailed:       1,
	}
	if mu.Lock(); !maps.Equal(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
	mu.Unlock()
}
