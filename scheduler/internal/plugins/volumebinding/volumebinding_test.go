package volumebinding

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
	"kctl/scheduler/internal/shape"
	"kctl/scheduler/internal/volumes"
)

func claim(name, class, size string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("claim-" + name), ResourceVersion: "7"}}
	c.Spec.StorageClassName, c.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = fixture.List("storage", size)
	for _, change := range changes {
		change(c)
	}
	return c
}

func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Annotations = volume, map[string]string{volumes.BindCompleted: "yes"}
	}
}

func volume(name, class, size, node string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "8"}}
	pv.Spec.StorageClassName, pv.Spec.AccessModes = class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Capacity, pv.Status.Phase = fixture.List("storage", size), corev1.VolumeAvailable
	if node != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
	for _, change := range changes {
		change(pv)
	}
	return pv
}

func class(name, provisioner string, waits bool) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingImmediate
	if waits {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

func using(claims ...string) *core.Pod {
	return fixture.Pod("p", func(p *core.Pod) {
		for _, name := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	})
}

var ephemeral = fixture.Pod("p", func(p *core.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
})

func TestFilter(t *testing.T) {
	local, made, now := class("local", "kubernetes.io/no-provisioner", true), class("made", "csi.example.com", true), class("now", "csi.example.com", false)
	capacity := func(size string) *storagev1.CSIStorageCapacity {
		q := resource.MustParse(size)
		return &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: "c"}, StorageClassName: "made", Capacity: &q, NodeTopology: &metav1.LabelSelector{}}
	}
	yes := true
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}
	zoned := class("zoned", "csi.example.com", true)
	zoned.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelHostname,
		Values: []string{"m"}}}}}
	taken := func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "other"}
	}
	kept := func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "a"}
	}
	begun := func(node string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{volumes.SelectedNode: node} }
	}
	const none, affinity = "node(s) didn't find available persistent volumes to bind", "node(s) didn't match PersistentVolume's node affinity"
	for name, test := range map[string]struct {
		objects []core.Object
		pod     *core.Pod
		reason  string
	}{
		"no volumes":               {nil, fixture.Pod("p"), ""},
		"bound, usable here":       {[]core.Object{claim("a", "x", "1Gi", boundTo("v")), volume("v", "x", "1Gi", "n")}, using("a"), ""},
		"bound, usable everywhere": {[]core.Object{claim("a", "x", "1Gi", boundTo("v")), volume("v", "x", "1Gi", "")}, using("a"), ""},
		"bound, elsewhere":         {[]core.Object{claim("a", "x", "1Gi", boundTo("v")), volume("v", "x", "1Gi", "m")}, using("a"), affinity},
		"bound, the volume is gone": {[]core.Object{claim("a", "x", "1Gi", boundTo("v"))}, using("a"),
			"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
		"lost": {[]core.Object{claim("a", "x", "1Gi", boundTo("v"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })}, using("a"),
			`persistentvolumeclaim "a" bound to non-existent persistentvolume "v"`},
		"lost, beside one without a volume": {[]core.Object{now, claim("a", "now", "1Gi"),
			claim("b", "x", "1Gi", boundTo("v"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })}, using("a", "b"),
			`persistentvolumeclaim "b" bound to non-existent persistentvolume "v"`},
		"bound elsewhere, and none to bind": {[]core.Object{local, claim("a", "x", "1Gi", boundTo("v")), volume("v", "x", "1Gi", "m"), claim("b", "local", "1Gi")},
			using("a", "b"), affinity + ", " + none},
		"no such claim":           {nil, using("a"), `persistentvolumeclaim "a" not found`},
		"ephemeral, not made yet": {nil, ephemeral, `waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"`},
		"ephemeral, somebody else's": {[]core.Object{claim("p-scratch", "x", "1Gi")}, ephemeral,
			"PVC default/p-scratch was not created for pod default/p (pod is not owner)"},
		"leaving": {[]core.Object{claim("a", "x", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} })}, using("a"),
			`persistentvolumeclaim "a" is being deleted`},
		"immediate, not bound": {[]core.Object{now, claim("a", "now", "1Gi")}, using("a"), "pod has unbound immediate PersistentVolumeClaims"},
		"no class, not bound":  {[]core.Object{claim("a", "", "1Gi")}, using("a"), "pod has unbound immediate PersistentVolumeClaims"},
		"static, here":         {[]core.Object{local, claim("a", "local", "1Gi"), volume("v", "local", "2Gi", "n")}, using("a"), ""},
		"static, elsewhere":    {[]core.Object{local, claim("a", "local", "1Gi"), volume("v", "local", "2Gi", "m")}, using("a"), none},
		"static, too small":    {[]core.Object{local, claim("a", "local", "3Gi"), volume("v", "local", "2Gi", "n")}, using("a"), none},
		"static, another's":    {[]core.Object{local, claim("a", "local", "1Gi"), volume("v", "local", "2Gi", "n", taken)}, using("a"), none},
		"static, kept for it":  {[]core.Object{local, claim("a", "local", "1Gi"), volume("v", "local", "2Gi", "n", kept)}, using("a"), ""},
		"static, one for two": {[]core.Object{local, claim("a", "local", "1Gi"), claim("b", "local", "1Gi"), volume("v", "local", "2Gi", "n")},
			using("a", "b"), none},
		"static, two for two": {[]core.Object{local, claim("a", "local", "5Gi"), claim("b", "local", "1Gi"), volume("v", "local", "2Gi", "n"),
			volume("w", "local", "5Gi", "n")}, using("a", "b"), ""},
		"made":                  {[]core.Object{made, claim("a", "made", "1Gi")}, using("a"), ""},
		"made, in other places": {[]core.Object{zoned, claim("a", "zoned", "1Gi")}, using("a"), none},
		"made, begun here":      {[]core.Object{made, claim("a", "made", "1Gi", begun("n"))}, using("a"), ""},
		"made, begun here, too little": {[]core.Object{made, driver, capacity("1Mi"), claim("a", "made", "1Gi", begun("n"))}, using("a"),
			"node(s) did not have enough free storage"},
		"made, the larger elsewhere": {[]core.Object{made, driver, capacity("1Mi"), claim("a", "made", "1Gi"), claim("b", "made", "2Gi", begun("m"))},
			using("a", "b"), none},
		"made, begun elsewhere": {[]core.Object{made, claim("a", "made", "1Gi", begun("m"))}, using("a"), none},
		"made, there is room":   {[]core.Object{made, driver, capacity("2Gi"), claim("a", "made", "1Gi")}, using("a"), ""},
		"made, there is too little": {[]core.Object{made, driver, capacity("1Mi"), claim("a", "made", "1Gi")}, using("a"),
			"node(s) did not have enough free storage"},
		"made, nobody knows about room": {[]core.Object{made, driver, claim("a", "made", "1Gi")}, using("a"), "node(s) did not have enough free storage"},
	} {
		status := plugintest.Filter(t.Context(), New(volumes.NewKnown(test.objects...), nil, DefaultOptions), test.pod, fixture.NodeInfo(fixture.Node("n")))
		if status.Message() != test.reason || test.reason != "" && status.Code() != framework.UnschedulableAndUnresolvable {
			t.Errorf("%s: %v %q, want %q", name, status.Code(), status.Message(), test.reason)
		}
	}
}

// The smaller the requested share of a node's storage, the higher its score: of
// existing volumes, or of the capacity in which new ones would be made.
func TestScore(t *testing.T) {
	local, ssd, made := class("local", "kubernetes.io/no-provisioner", true), class("ssd", "kubernetes.io/no-provisioner", true),
		class("made", "csi.example.com", true)
	yes := true
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}
	room := resource.MustParse("10Gi")
	capacity := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Name: "c"},
		StorageClassName: "made",
		Capacity:         &room,
		NodeTopology:     &metav1.LabelSelector{},
	}
	packed := Options{Shape: shape.Function{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 100}}}
	known := []core.Object{local, ssd, made, driver, capacity, volume("v", "local", "8Gi", "n"), volume("w", "ssd", "2Gi", "n"),
		claim("a", "local", "2Gi"), claim("b", "ssd", "2Gi"), claim("c", "made", "3Gi"), claim("d", "made", "1Gi"), claim("bound", "local", "8Gi", boundTo("v"))}
	for name, test := range map[string]struct {
		options Options
		pod     *core.Pod
		score   int64
	}{
		"no volumes":                     {DefaultOptions, fixture.Pod("p"), 0},
		"bound already":                  {DefaultOptions, using("bound"), 0},
		"a quarter":                      {DefaultOptions, using("a"), 75},
		"all of it":                      {DefaultOptions, using("b"), 0},
		"of two classes the mean":        {DefaultOptions, using("a", "b"), 38}, // of 75 and 0
		"to be made":                     {DefaultOptions, using("c"), 70},
		"two to be made in the same":     {DefaultOptions, using("c", "d"), 80}, // 4 of twice 10
		"what is there counts alone":     {DefaultOptions, using("a", "c"), 75},
		"another shape":                  {packed, using("a"), 25},
		"another shape, to be made":      {packed, using("c"), 30},
		"another shape, nothing to rank": {packed, using("bound"), 0},
	} {
		plugin, node := New(volumes.NewKnown(known...), nil, test.options), fixture.NodeInfo(fixture.Node("n"))
		state, pod := framework.NewCycleState(nil), framework.NewPodInfo(test.pod)
		if _, status := plugin.PreFilter(t.Context(), state, pod); !status.IsSuccess() && !status.IsSkip() {
			t.Fatal(name, status.Message())
		}
		score, status := plugin.Score(t.Context(), state, pod, node)
		if score != test.score || !status.IsSuccess() {
			t.Errorf("%s: %d %v, want %d", name, score, status.Message(), test.score)
		}
		if skips := plugin.PreScore(t.Context(), state, pod, nil).IsSkip(); skips && score != 0 {
			t.Errorf("%s: is not asked for its score", name)
		}
	}
}

// The smallest volume that fits is taken, and not given to a second pod until
// the first gives it back.
func TestReserve(t *testing.T) {
	known := volumes.NewKnown(class("local", "kubernetes.io/no-provisioner", true), claim("a", "local", "1Gi"), claim("b", "local", "1Gi"),
		volume("large", "local", "9Gi", "n"), volume("small", "local", "2Gi", "n"))
	plugin, node := New(known, nil, DefaultOptions), fixture.NodeInfo(fixture.Node("n"))
	reserve := func(name string) (*framework.CycleState, []string) {
		state, pod := framework.NewCycleState(nil), framework.NewPodInfo(using(name))
		state.Nodes = []*framework.NodeInfo{node}
		if _, status := plugin.PreFilter(t.Context(), state, pod); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		if status := plugin.Reserve(t.Context(), state, pod, "n"); !status.IsSuccess() {
			return state, nil
		}
		var taken []string
		for _, m := range state.Read(stateKey).(*claims).plan.static {
			taken = append(taken, m.volume.Name)
		}
		return state, taken
	}
	first, taken := reserve("a")
	if !slices.Equal(taken, []string{"small"}) || !plugin.PreBindTakesLong(first) {
		t.Errorf("the first has %v", taken)
	}
	if _, taken := reserve("b"); !slices.Equal(taken, []string{"large"}) {
		t.Errorf("the second has %v", taken)
	}
	plugin.Unreserve(t.Context(), first, nil, "n")
	if _, taken := reserve("a"); !slices.Equal(taken, []string{"small"}) {
		t.Errorf("after it was given back: %v", taken)
	}
}

// TestEqualClaimsTakeVolumesInThePodsOrder: whose name comes first makes no difference.
func TestEqualClaimsTakeVolumesInThePodsOrder(t *testing.T) {
	for _, order := range [][]string{{"a", "z"}, {"z", "a"}} {
		known := volumes.NewKnown(class("made", "csi.example.com", true), claim("a", "made", "1Gi"), claim("z", "made", "1Gi"), volume("only", "made", "1Gi", "n"))
		plugin, state, pod := New(known, nil, DefaultOptions), framework.NewCycleState(nil), framework.NewPodInfo(using(order...))
		state.Nodes = []*framework.NodeInfo{fixture.NodeInfo(fixture.Node("n"))}
		if _, status := plugin.PreFilter(t.Context(), state, pod); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		if status := plugin.Reserve(t.Context(), state, pod, "n"); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		plan := state.Read(stateKey).(*claims).plan
		if len(plan.static) != 1 || plan.static[0].claim.Name != order[0] || len(plan.provision) != 1 || plan.provision[0].claim.Name != order[1] {
			t.Errorf("%v: %+v", order, plan)
		}
	}
}
