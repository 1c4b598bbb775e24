package volume

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// claimed is a pod with a volume "data" from a claim of that name, bound to a
// volume "pv" in the store.
func claimed(s *store, source corev1.PersistentVolumeSource) (*core.Pod, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim-1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: source, ClaimRef: &corev1.ObjectReference{UID: "claim-1"}},
	}
	s.claims, s.volumes = map[string]*corev1.PersistentVolumeClaim{"ns/data": claim}, map[string]*corev1.PersistentVolume{"pv": pv}
	return podWith(claimVolume("data")), claim, pv
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
}

func localSource(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
}

func hostSource(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
}

func dataMount(subPath string) *core.Container {
	return &core.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: subPath}}}
}

// A volume's group is its pod's as long as it is mounted.
func TestGroupsOfClaimedVolumes(t *testing.T) {
	for value, want := range map[string][]int64{"4242": {4242}, "": nil, "staff": nil, "-1": nil} {
		s := newStore()
		m := newManager(t, s)
		pod, _, pv := claimed(s, hostSource(t.TempDir()))
		pv.Annotations = map[string]string{"pv.beta.kubernetes.io/gid": value}
		mustMount(t, m, pod)
		if got := m.Groups(pod.UID); !slices.Equal(got, want) {
			t.Errorf("%q: the groups %v, want %v", value, got, want)
		}
	}
}

// What upstream's kubelet says about claims that can't be mounted.
func TestClaimsThatCantBeHad(t *testing.T) {
	const unprocessed = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: "
	type all struct {
		s     *store
		pod   *core.Pod
		claim *corev1.PersistentVolumeClaim
		pv    *corev1.PersistentVolume
	}
	now, block := metav1.Now(), corev1.PersistentVolumeBlock
	for _, c := range []struct {
		but  func(a all)
		want string
	}{
		{func(a all) { delete(a.s.claims, "ns/data") },
			unprocessed + `error processing PVC ns/data: failed to fetch PVC from API server: persistentvolumeclaims "ns/data" not found`},
		{func(a all) { a.claim.Status.Phase = corev1.ClaimPending }, unprocessed + "error processing PVC ns/data: PVC is not bound"},
		{func(a all) { a.claim.DeletionTimestamp = &now }, unprocessed + "error processing PVC ns/data: PVC is being deleted"},
		{func(a all) { a.claim.Spec.VolumeName = "" }, unprocessed + "error processing PVC ns/data: PVC has empty pvc.Spec.VolumeName"},
		{func(a all) { delete(a.s.volumes, "pv") },
			unprocessed + `error processing PVC ns/data: failed to fetch PV pv from API server: persistentvolumes "pv" not found`},
		{func(a all) { a.pv.Spec.ClaimRef = nil },
			unprocessed + "error processing PVC ns/data: found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"},
		{func(a all) { a.pv.Spec.ClaimRef.UID = "other" },
			unprocessed + "error processing PVC ns/data: found PV object pv but its pv.Spec.ClaimRef.UID other does not point to claim.UID claim-1"},
		{func(a all) { a.pv.Spec.VolumeMode = &block }, unprocessed + "volume data has volumeMode Block, but is specified in volumeMounts"},
		{func(a all) {
			a.pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			a.s.claims["ns/p-data"] = a.claim
		}, unprocessed + "PVC ns/p-data was not created for pod ns/p (pod is not owner)"},
		{func(a all) {
			a.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
		},
			`MountVolume.FindPluginBySpec failed for volume "pv" : persistent volumes of the kind nfs are not supported, only hostPath, local`},
		{func(a all) {
			a.pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-2"}}},
			}}}}
		}, `MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms`},
		{func(a all) { a.pv.Spec.MountOptions = []string{"hard"} },
			`MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not supported for this volume type`},
		{func(a all) {
			a.pv.Spec.MountOptions, a.pv.Spec.PersistentVolumeSource = []string{"hard"}, localSource("/")
		}, `MountVolume.SetUp failed for volume "pv" : directories are not mounted with the option "hard"`},
		{func(a all) { a.pv.Spec.PersistentVolumeSource = localSource("/non-existent") },
			`MountVolume.SetUp failed for volume "pv" : open /non-existent: no such file or directory`},
		{func(a all) { a.pv.Spec.PersistentVolumeSource = localSource("/dev/null") },
			`MountVolume.SetUp failed for volume "pv" : /dev/null is not a directory: only directories are supported`},
	} {
		s := newStore()
		m := newManager(t, s)
		a := all{s: s}
		a.pod, a.claim, a.pv = claimed(s, hostSource("/"))
		c.but(a)
		if err := m.Mount(t.Context(), a.pod); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// A bound claim's volume is mounted for all of its pods, and its content is
// unchanged when they are gone.
func TestClaimedVolumes(t *testing.T) {
	needsMounts(t)
	for name, source := range map[string]func(string) corev1.PersistentVolumeSource{"local": localSource, "hostPath": hostSource} {
		dir, s := t.TempDir(), newStore()
		must(t, os.WriteFile(filepath.Join(dir, "kept"), []byte("x"), 0o600))
		pod, claim, _ := claimed(s, source(dir))
		m := newManager(t, s)
		other := pod.DeepCopy()
		other.UID, other.Name = "uid-2", "other"
		mustMount(t, m, pod)
		mustMount(t, m, other)
		if _, actual := m.Count(); len(actual) != 1 || actual[pluginName(name)] != 2 {
			t.Errorf("%s: %v are counted", name, actual)
		}
		for _, of := range []*core.Pod{pod, other} {
			mounts, err := m.Mounts(t.Context(), of, dataMount(""), nil)
			must(t, err)
			expectFile(t, "x", mounts[0].HostPath, "kept")
			if mounts[0].ReadOnly || mounts[0].SELinuxRelabel != (name == "local") {
				t.Errorf("%s: %+v", name, mounts[0])
			}
			_, err = m.Mounts(t.Context(), of, dataMount("of/"+of.Name), nil)
			must(t, err)
		}
		// A restarted kubelet finds the mount, and unmounts it when the pod has
		// ended.
		again := managerIn(t, m.config.RootDir, s)
		mustMount(t, again, pod)
		asked := s.asked
		mustMount(t, again, pod)
		if s.asked != asked {
			t.Errorf("%s: mounting again asked the API", name)
		}
		delete(s.claims, claim.Namespace+"/"+claim.Name)
		for _, of := range []*core.Pod{pod, other} {
			must(t, again.RemovePodDir(t.Context(), of.UID))
		}
		expectFile(t, "x", dir, "kept")
		if _, err := os.Stat(filepath.Join(dir, "of", "other")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if points, err := mount.Below(m.config.RootDir); err != nil || len(points) != 0 {
			t.Errorf("%s: still mounted: %v, %v", name, points, err)
		}
	}
}

// An ephemeral volume is the claim that was created for the pod.
func TestEphemeralVolumes(t *testing.T) {
	s, yes := newStore(), true
	pod, claim, _ := claimed(s, hostSource("/"))
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	claim.OwnerReferences = []metav1.OwnerReference{{UID: pod.UID, Controller: &yes}}
	s.claims = map[string]*corev1.PersistentVolumeClaim{"ns/p-data": claim}
	mustMount(t, newManager(t, s), pod)
}

// A read-only mount can't be written; the mount itself is read-only if it is
// the pod's own.
func TestReadOnlyClaims(t *testing.T) {
	needsMounts(t)
	s := newStore()
	pod, _, pv := claimed(s, localSource(t.TempDir()))
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	pv.Spec.MountOptions = []string{"noexec", "nosuid"}
	m := newManager(t, s)
	mustMount(t, m, pod)
	mounts, err := m.Mounts(t.Context(), pod, dataMount(""), nil)
	must(t, err)
	var is unix.Statfs_t
	must(t, unix.Statfs(mounts[0].HostPath, &is))
	const want = unix.ST_RDONLY | unix.ST_NOEXEC | unix.ST_NOSUID
	if !mounts[0].ReadOnly || is.Flags&want != want {
		t.Errorf("%+v with flags %x", mounts[0], is.Flags)
	}
	must(t, os.WriteFile(filepath.Join(pv.Spec.Local.Path, "f"), nil, 0o600)) // the source is unchanged
	pod.UID, pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = "uid-2", false
	pv.Spec.PersistentVolumeSource, pv.Spec.MountOptions = hostSource("/"), nil
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	mustMount(t, m, pod)
	if mounts, err = m.Mounts(t.Context(), pod, dataMount(""), nil); err != nil || !mounts[0].ReadOnly {
		t.Errorf("hostPath: %+v, %v", mounts, err)
	}
}

// fsGroup applies to everything in a local volume, for the first pod that uses
// it at a time, and to nothing elsewhere.
func TestLocalVolumesBelongToTheGroup(t *testing.T) {
	needsMounts(t)
	dir, outside := t.TempDir(), t.TempDir()
	below := filepath.Join(dir, "mounted")
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700), os.WriteFile(filepath.Join(dir, "d", "f"), nil, 0o600),
		os.WriteFile(filepath.Join(outside, "f"), nil, 0o600), os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "link")),
		os.Mkdir(below, 0o700), unix.Mount("tmpfs", below, "tmpfs", 0, "mode=0700"), os.WriteFile(filepath.Join(dir, "s"), nil, 0o600),
		os.Chmod(filepath.Join(dir, "s"), os.ModeSetuid|0o711))
	t.Cleanup(func() { must(t, mount.UnmountBelow(below)) })
	s := newStore()
	pod, _, _ := claimed(s, localSource(dir))
	m := newManager(t, s)
	var warned []string
	m.config.Warn = func(pod *core.Pod, reason, message string) {
		warned = append(warned, pod.Name+": "+reason+": "+message)
	}
	begin := func(name string, group int64, policy corev1.PodFSGroupChangePolicy) *core.Pod {
		one := pod.DeepCopy()
		one.Name, one.UID = name, types.UID(name)
		one.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group, FSGroupChangePolicy: &policy}
		mustMount(t, m, one)
		return one
	}
	expect := func(path string, mode os.FileMode, group uint32) {
		t.Helper()
		info, err := os.Lstat(path)
		must(t, err)
		if got := info.Sys().(*syscall.Stat_t).Gid; info.Mode() != mode || got != group {
			t.Errorf("%s: %v of group %d, want %v of %d", path, info.Mode(), got, mode, group)
		}
	}
	first := begin("first", 1234, corev1.FSGroupChangeAlways)
	expect(dir, os.ModeDir|os.ModeSetgid|0o775, 1234)
	expect(filepath.Join(dir, "d"), os.ModeDir|os.ModeSetgid|0o770, 1234)
	expect(filepath.Join(dir, "d", "f"), 0o660, 1234)
	expect(filepath.Join(dir, "s"), os.ModeSetuid|0o771, 1234)
	expect(filepath.Join(outside, "f"), 0o600, 0)
	expect(below, os.ModeDir|0o700, 0)
	second := begin("second", 4321, corev1.FSGroupChangeAlways)
	expect(filepath.Join(dir, "d", "f"), 0o660, 1234)
	const want = "second: AlreadyMountedVolume: The requested fsGroup is 4321, but the volume pv has GID 1234. The volume may not be shareable."
	if len(warned) != 1 || warned[0] != want {
		t.Errorf("warned of %q, want %s", warned, want)
	}
	must(t, m.RemovePodDir(t.Context(), first.UID), m.RemovePodDir(t.Context(), second.UID), os.Chown(filepath.Join(dir, "d", "f"), 0, 1))
	third := begin("third", 1234, corev1.FSGroupChangeOnRootMismatch)
	expect(filepath.Join(dir, "d", "f"), 0o660, 1)
	must(t, m.RemovePodDir(t.Context(), third.UID))
	begin("fourth", 4321, corev1.FSGroupChangeOnRootMismatch)
	expect(filepath.Join(dir, "d", "f"), 0o660, 4321)
}

// A ReadWriteOncePod volume is not given to a second pod before the first has
// ended.
func TestOneOfAReadWriteOncePodVolume(t *testing.T) {
	s := newStore()
	pod, _, pv := claimed(s, hostSource("/"))
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	m := newManager(t, s)
	mustMount(t, m, pod)
	other := pod.DeepCopy()
	other.UID = "uid-2"
	if err := m.Mount(t.Context(), other); err == nil || !strings.Contains(err.Error(), "ReadWriteOncePod access mode and is already in use by another pod") {
		t.Errorf("error %v", err)
	}
	must(t, m.RemovePodDir(t.Context(), pod.UID))
	mustMount(t, m, other)
	if n := m.mounting.Len(); n > 0 {
		t.Errorf("%d are kept of volumes that nobody mounts any more", n)
	}
}
