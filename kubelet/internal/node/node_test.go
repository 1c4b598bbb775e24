package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/filesystem"
	"kctl/proto/rest"
)

type fakeRuntime struct {
	notReady []string
	images   error
	silent   bool     // until the caller gives up
	cidrs    []string // the last ones that it got
	deaf     error    // of UpdatePodCIDRs
}

func (r *fakeRuntime) UpdatePodCIDRs(_ context.Context, cidrs string) error {
	r.cidrs = append(r.cidrs, cidrs)
	return r.deaf
}

func (r *fakeRuntime) RuntimeVersion() string { return "containerd://1" }
func (r *fakeRuntime) NotReady() []string     { return r.notReady }
func (r *fakeRuntime) Features() RuntimeFeatures {
	yes := true
	return RuntimeFeatures{Handlers: []corev1.NodeRuntimeHandler{{Name: "vm"}}, Node: &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes}}
}
func (r *fakeRuntime) Images(ctx context.Context) ([]corev1.ContainerImage, error) {
	if r.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []corev1.ContainerImage{{Names: []string{"i"}, SizeBytes: 1}}, r.images
}

type noEvents struct{}

func (noEvents) Eventf(runtime.Object, string, string, string, ...any) {}

func testConfig(t *testing.T, client *rest.Client, clock clock.Clock) Config {
	return Config{
		Client: client, Name: "n", Hostname: "N", Addresses: func() []string { return []string{"192.0.2.1"} }, Labels: map[string]string{"zone": "a"},
		Register: true, MaxPods: 7, Port: func() int32 { return 10250 }, DeclaredFeatures: []string{"A", "B"}, Version: "v1",
		Machine:       Machine{CPUs: 2, Memory: 1 << 30, EphemeralStorage: 1 << 30, HugePages: map[corev1.ResourceName]int64{"hugepages-2Mi": 1 << 28}, Kernel: "k"},
		Reserved:      corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi"), corev1.ResourceCPU: resource.MustParse("3")},
		UnderPressure: func(corev1.NodeConditionType) bool { return false },
		Runtime:       &fakeRuntime{}, Events: noEvents{}, StatusUpdateFrequency: 10 * time.Second, StatusReportFrequency: 5 * time.Minute,
		LeaseDuration: 40 * time.Second, Startup: func(StartupPhase, time.Duration) {}, Clock: clock, Logger: zap.NewNop(),
	}
}

func TestStatus(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	m := New(testConfig(t, client, clocktesting.NewFakeClock(start)))
	other := corev1.NodeCondition{Type: "example.com/other", Status: corev1.ConditionTrue}
	first := m.status(&corev1.NodeStatus{Conditions: []corev1.NodeCondition{other}}, state{now: start, runtime: "containerd://1"})
	if got := first.Allocatable.Memory().String(); got != "512Mi" {
		t.Errorf("allocatable memory %s, want what neither the system nor huge pages have", got)
	}
	if got := first.Allocatable.Cpu().String(); got != "0" || first.Capacity.Pods().Value() != 7 {
		t.Errorf("allocatable cpu %s of pods %s", got, first.Capacity.Pods())
	}
	if first.NodeInfo.RunningInUserNamespace == nil {
		t.Error("the node does not say whether its kubelet runs in a user namespace")
	}
	if first.NodeInfo.Swap != nil { // kube-apiserver refuses an amount of 0
		t.Errorf("a machine without swap has %d bytes of it", *first.NodeInfo.Swap.Capacity)
	}
	if statusOf(&first, corev1.NodeReady) != corev1.ConditionTrue || first.Conditions[0] != other || len(first.Conditions) != 5 {
		t.Errorf("conditions %+v", first.Conditions)
	}
	later := start.Add(time.Minute)
	same := m.status(&first, state{now: later, runtime: "containerd://1"})
	if !sameButHeartbeat(first, same) || !same.Conditions[4].LastTransitionTime.Time.Equal(start) || !same.Conditions[4].LastHeartbeatTime.Time.Equal(later) {
		t.Errorf("a minute later %+v", same.Conditions[4])
	}
	first.Capacity["example.com/dongle"] = resource.MustParse("4")
	if told := m.status(&first, state{now: later}); told.Capacity.Name("example.com/dongle", resource.DecimalSI).Value() != 4 ||
		told.Allocatable.Name("example.com/dongle", resource.DecimalSI).Value() != 4 {
		t.Errorf("of what an operator advertised there is %v, for pods %v", told.Capacity, told.Allocatable)
	}
	m.config.UnderPressure = func(condition corev1.NodeConditionType) bool { return condition == corev1.NodeMemoryPressure }
	down := m.status(&same, state{now: later, notReady: []string{"down", "out"}})
	ready := down.Conditions[4]
	if ready.Status != corev1.ConditionFalse || ready.Reason != "KubeletNotReady" || ready.Message != "[down, out]" ||
		!ready.LastTransitionTime.Time.Equal(later) {
		t.Errorf("%+v", ready)
	}
	if down.Conditions[1].Status != corev1.ConditionTrue || sameButHeartbeat(same, down) {
		t.Errorf("%+v", down.Conditions[1])
	}
}

func TestRuntimeFeaturesAreShown(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	m := New(testConfig(t, client, clocktesting.NewFakeClock(time.Now())))
	status := m.status(&corev1.NodeStatus{}, m.observe(t.Context()))
	if got := strings.Join(status.DeclaredFeatures, " "); got != "A B" {
		t.Errorf("declared features %q", got)
	}
	if len(status.RuntimeHandlers) != 1 || status.RuntimeHandlers[0].Name != "vm" || !*status.Features.SupplementalGroupsPolicy {
		t.Errorf("handlers %v, features %v", status.RuntimeHandlers, status.Features)
	}
}

// A runtime that does not answer does not hold up the node's status, least of
// all that it is not ready.
func TestARuntimeThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		config := testConfig(t, client, clock.RealClock{})
		config.Runtime = &fakeRuntime{silent: true, notReady: []string{"it is silent"}}
		m := New(config)
		m.node.Status.Images = []corev1.ContainerImage{{Names: []string{"before"}}}
		ctx, cancel := context.WithTimeout(t.Context(), config.StatusUpdateFrequency)
		defer cancel()
		if s := m.observe(ctx); ctx.Err() != nil || len(s.notReady) != 1 || len(s.images) != 1 {
			t.Errorf("%+v, %v", s, ctx.Err())
		}
	})
}

func TestUsageIsRead(t *testing.T) {
	now := time.Now()
	u, err := ReadUsage(t.TempDir(), now)
	if err != nil || u.At != now || u.CPU == 0 || u.WorkingSet == 0 || u.WorkingSet > u.Memory || u.DiskCapacity < u.DiskAvailable || u.Inodes < u.InodesFree {
		t.Errorf("%+v, %v", u, err)
	}
	memory, _ := Memory()
	huge := int64(0)
	for _, size := range hugePages() {
		huge += size
	}
	if u.Available+u.WorkingSet != uint64(memory["MemTotal"]-huge) {
		t.Errorf("%d bytes are left, %d worked with, of %d", u.Available, u.WorkingSet, memory["MemTotal"])
	}
	if used, workingSet := inUse(map[string]int64{"AnonPages": 1, "Cached": 20, "Buffers": 300, "SwapCached": 4000, "Inactive(file)": 21,
		"MemFree": 7}); used != 4321 || workingSet != 4300 {
		t.Errorf("%d bytes used, %d worked with", used, workingSet)
	}
	if u.Disk == "" || filesystem.Device("/dev/shm") == u.Disk {
		t.Errorf("the disk is %q, shared memory %q", u.Disk, filesystem.Device("/dev/shm"))
	}
	if u.DiskUsed+u.DiskAvailable > u.DiskCapacity {
		t.Errorf("%d bytes used and %d available of %d", u.DiskUsed, u.DiskAvailable, u.DiskCapacity)
	}
	if u.Processes == 0 || u.MaxProcesses < u.Processes || u.Booted.After(now) || u.Booted.IsZero() || u.SwapFree > u.Swap {
		t.Errorf("%+v", u)
	}
	table, routes := filepath.Join(t.TempDir(), "dev"), filepath.Join(t.TempDir(), "route")
	text := "Inter-| Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\nvethab: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 " +
		"0 0 0\n  eth0:  10 1 2 7 0 0 0 0 30 3 4 8 0 0 0 0\n broken: 1\n"
	ways := "Iface\tDestination\tGateway\neth0\t000200C0\t00000000\t1\t0\t0\t0\t00FFFFFF\neth0\t00000000\t010200C0\t3\t0\t0\t0\t00000000\n"
	if err := errors.Join(os.WriteFile(table, []byte(text), 0o600), os.WriteFile(routes, []byte(ways), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := interfaces(table, ""); len(got) != 2 || got[0].Name != "ifb0" {
		t.Errorf("interfaces %+v", got)
	}
	if got := interfaces(table, routes); len(got) != 2 || got[0] != (Interface{
		Name: "eth0", RxBytes: 10, RxPackets: 1, RxErrors: 2, RxDropped: 7, TxBytes: 30,
		TxPackets: 3, TxErrors: 4, TxDropped: 8,
	}) {
		t.Errorf("interfaces %+v", got)
	}
	if got, all := InterfacesOf(os.Getpid()), interfaces("/proc/net/dev", "/proc/net/route"); len(got) != len(all) {
		t.Errorf("this process has the interfaces %+v, not %+v", got, all)
	}
	if _, err := ReadUsage("/no/such", now); err == nil {
		t.Error("a directory that is not there has a file system")
	}
}

// What is kept for huge pages is left to nobody else.
func TestHugePagesAreNotLeft(t *testing.T) {
	memory := map[string]int64{"MemTotal": 1000, "AnonPages": 300, "Cached": 150, "Inactive(file)": 50}
	for huge, want := range map[int64]int64{0: 600, 500: 100, 650: 0} {
		available, capacity := memoryLeft(memory, map[corev1.ResourceName]int64{"hugepages-2Mi": huge / 5, "hugepages-1Gi": huge - huge/5})
		if available != want || capacity != 1000-huge {
			t.Errorf("with %d in huge pages %d are left of %d, want %d", huge, available, capacity, want)
		}
	}
}

func TestMachineIsRead(t *testing.T) {
	m, err := ReadMachine(t.TempDir())
	if err != nil || m.CPUs < 1 || m.Memory < 1<<20 || m.EphemeralStorage < 1<<20 || m.Kernel == "" || m.OSImage == "" || m.BootID == "" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := ReadMachine("/does/not/exist"); err == nil {
		t.Error("a root directory that does not exist has a size")
	}
}

// A node that a cloud controller initializes is tainted until then, has the
// provider ID that it was given, and keeps the addresses that the cloud has
// written.
func TestNodesOfACloud(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, client, clocktesting.NewFakeClock(time.Now()))
	if plain := New(config).newNode(); len(plain.Spec.Taints) != 0 || plain.Spec.ProviderID != "" || plain.Annotations[annotationGivenIP] != "" {
		t.Errorf("a node of no cloud says %+v %v", plain.Spec, plain.Annotations)
	}
	config.CloudProviderExternal, config.GivenIP, config.ProviderID = true, "192.0.2.1", "cloud://1"
	m := New(config)
	node := m.newNode()
	want := corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != want || node.Spec.ProviderID != "cloud://1" ||
		node.Annotations["alpha.kubernetes.io/provided-node-ip"] != "192.0.2.1" {
		t.Errorf("%+v %v", node.Spec, node.Annotations)
	}
	first := m.status(&corev1.NodeStatus{}, state{})
	if len(first.Addresses) != 2 {
		t.Errorf("addresses %v", first.Addresses)
	}
	theirs := []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "198.51.100.1"}}
	if later := m.status(&corev1.NodeStatus{Addresses: theirs}, state{}); len(later.Addresses) != 1 || later.Addresses[0] != theirs[0] {
		t.Errorf("addresses %v, want the cloud's", later.Addresses)
	}
}

// Until its first report, the API has what an earlier kubelet gave to pods. This one decides by what
// it gives itself, beside what others have advertised.
func TestAnEarlierKubeletsSizesDoNotCount(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	m := New(testConfig(t, client, clocktesting.NewFakeClock(time.Now())))
	own := m.Node().Status.Allocatable
	was := m.Node().DeepCopy()
	was.UID, was.ResourceVersion = "it", "1"
	was.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1000")
	was.Status.Capacity["example.com/thing"] = resource.MustParse("3")
	m.setNode(was)
	now := m.Node()
	if cpu, things := now.Status.Allocatable[corev1.ResourceCPU], now.Status.Allocatable["example.com/thing"]; now.UID != "it" ||
		cpu.Cmp(own[corev1.ResourceCPU]) != 0 || things.Value() != 3 {
		t.Errorf("it gives to pods %v, at first %v", now.Status.Allocatable, own)
	}
	if was.Status.Allocatable.Cpu().Value() != 1000 || m.node != was {
		t.Error("what the API has is not known any more, and the difference would not be sent")
	}
}

// What the device plugins of an earlier kubelet advertised is not there; what an operator advertised stays,
// whichever of our kubelets comes next.
func TestDevicesOfAnEarlierKubeletAreGone(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	m := New(testConfig(t, client, clocktesting.NewFakeClock(time.Now())))
	const devices = "example.com/gpu"
	for _, c := range []struct {
		version, machine string
		want             int64
	}{
		{"v1.37.2", m.config.Machine.MachineID, 0},
		{"v1.37.2+kctl-0.0.9", m.config.Machine.MachineID, 3},
		{m.config.Version, m.config.Machine.MachineID, 3},
		{m.config.Version, "another", 0},
		{"", "", 3},
	} {
		was := m.Node().DeepCopy()
		was.UID = "it"
		was.Status.NodeInfo.KubeletVersion, was.Status.NodeInfo.MachineID = c.version, c.machine
		was.Status.Capacity[devices], was.Status.Allocatable[devices] = resource.MustParse("3"), resource.MustParse("3")
		m.setNode(was)
		told := m.status(&was.Status, state{})
		for what, list := range map[string]corev1.ResourceList{
			"capacity": told.Capacity, "allocatable": told.Allocatable, "admission": m.Node().Status.Allocatable,
		} {
			if got, there := list[devices]; !there || got.Value() != c.want {
				t.Errorf("after %q on machine %q: %s has %v, want %d", c.version, c.machine, what, got.Value(), c.want)
			}
		}
		told.Capacity[devices] = resource.MustParse("5") // by an operator, after this kubelet's report
		if again := m.status(&told, state{}); again.Allocatable.Name(devices, resource.DecimalSI).Value() != 5 {
			t.Errorf("after %q: an operator's resource is %v", c.version, again.Allocatable)
		}
	}
}

// More huge pages than what is left for pods leave them no memory, not less than none: the API refuses that.
func TestAllocatableIsNeverNegative(t *testing.T) {
	capacity := Machine{CPUs: 1, Memory: 1 << 30, HugePages: map[corev1.ResourceName]int64{"hugepages-2Mi": 1 << 29, "hugepages-1Gi": 1 << 30}}.capacity()
	if left := allocatable(capacity, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}); !left.Memory().IsZero() {
		t.Errorf("for pods there are %s", left.Memory())
	}
}

// A machine may keep all that it has, but not more; of a disk whose size it does not tell, nothing is known.
func TestMoreIsReservedThanThereIs(t *testing.T) {
	machine := Machine{CPUs: 2, Memory: 1 << 30}
	reserve := func(cpu, memory string) error {
		return machine.CheckReserved(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"), "pid": resource.MustParse("1000")})
	}
	if err := reserve("2", "1Gi"); err != nil {
		t.Error(err)
	}
	machine.EphemeralStorage = 1 << 20
	err := fmt.Sprint(reserve("2001m", "1025Mi"))
	for _, part := range []string{"cpu: 2001m are reserved, and the machine has 2: ", "memory: 1025Mi ", "ephemeral-storage: 1Gi "} {
		if !strings.Contains(err, part) {
			t.Errorf("%q has nothing of %q", err, part)
		}
	}
}

// A disk whose size is not told can't be asked for, and is not kept for the system either.
func TestADiskThatIsNotTold(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, client, clocktesting.NewFakeClock(time.Now()))
	config.Reserved[corev1.ResourceEphemeralStorage] = resource.MustParse("1Mi")
	before := New(config).status(&corev1.NodeStatus{}, state{})
	if left := before.Allocatable.StorageEphemeral().Value(); left != 1<<30-1<<20 {
		t.Errorf("for pods there are %d bytes", left)
	}
	config.Machine.EphemeralStorage = 0
	now := New(config).status(&before, state{})
	for what, list := range map[string]corev1.ResourceList{"capacity": now.Capacity, "allocatable": now.Allocatable} {
		if size, told := list[corev1.ResourceEphemeralStorage]; told {
			t.Errorf("%s: %s of disk", what, &size)
		}
	}
}
