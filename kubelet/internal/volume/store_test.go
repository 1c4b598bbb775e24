package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// store is a set of API objects that a test changes.
type store struct {
	mu         sync.Mutex
	configMaps map[string]map[string]string
	claims     map[string]*corev1.PersistentVolumeClaim
	volumes    map[string]*corev1.PersistentVolume
	secrets    map[string]map[string]string
	token      string
	away       bool
	asked      int
	registered map[types.UID]bool
	kept       map[string]map[string]string // config maps as the cache still has them
}

func newStore() *store {
	return &store{
		configMaps: map[string]map[string]string{"m": {"k": "1", "other": "x"}},
		secrets:    map[string]map[string]string{"s": {"password": "hunter2"}},
		token:      "token-1",
		registered: map[types.UID]bool{},
	}
}

var errAway = errors.New("connection refused")

func (s *store) ConfigMap(_ context.Context, _, name string) (*core.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	data, ok := s.kept[name]
	if !ok {
		data, ok = s.configMaps[name]
	}
	switch {
	case s.away:
		return nil, errAway
	case !ok:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &core.ConfigMap{Data: data, BinaryData: map[string][]byte{"binary": {0, 1}}}, nil
}

func (s *store) Secret(_ context.Context, _, name string) (*core.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.secrets[name]
	switch {
	case s.away:
		return nil, errAway
	case !ok:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	secret := &core.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	return secret, nil
}

func (s *store) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return stored(s, s.claims, core.PersistentVolumeClaims, namespace+"/"+name)
}

func (s *store) PersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	return stored(s, s.volumes, core.PersistentVolumes, name)
}

func stored[T any](s *store, in map[string]*T, resource core.Resource, name string) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if object, ok := in[name]; ok && !s.away {
		return object, nil
	}
	if s.away {
		return nil, errAway
	}
	return nil, apierrors.NewNotFound(resource.GVR().GroupResource(), name)
}

func (s *store) TrustBundle(context.Context, string) (string, error) {
	return "", errAway
}

func (s *store) TrustBundlesOf(context.Context, string, labels.Selector) ([]string, error) {
	return nil, errAway
}

func (s *store) PodCertificate(context.Context, *core.Pod, *corev1.PodCertificateProjection) (key, chain []byte, err error) {
	return nil, nil, errAway
}

func (s *store) Token(_ context.Context, pod *core.Pod, audience string, _ int64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return "", errAway
	}
	return s.token + "/" + pod.Name + "/" + audience, nil
}

func (s *store) Register(pod *core.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered[pod.UID] = true
}

func (s *store) Unregister(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.registered, uid)
}

func (s *store) Renew(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered[uid] {
		s.kept = nil
	}
}

func (s *store) Prefetch(context.Context, *core.Pod) {}

func (s *store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// newManager returns a Manager in a directory of the test's own, where nothing
// stays mounted.
func newManager(t *testing.T, s *store) *Manager {
	t.Helper()
	return managerIn(t, t.TempDir(), s)
}

func managerIn(t *testing.T, root string, s *store) *Manager {
	t.Helper()
	m, err := NewManager(configFor(root, s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(root); err != nil {
			t.Error(err)
		}
	})
	return m
}

func configFor(root string, s *store) Config {
	return Config{
		RootDir: root,
		Objects: s,
		Clock:   clock.RealClock{},
		Logger:  zap.NewNop(),
		Labels:  func() map[string]string { return map[string]string{"kubernetes.io/hostname": "node-1"} },
		Allocatable: func() corev1.ResourceList {
			return corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi")}
		},
	}
}

func needsMounts(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	probe := t.TempDir()
	if err := syscall.Mount("tmpfs", probe, "tmpfs", 0, ""); err != nil {
		t.Skipf("mounting is not possible here: %v", err)
	}
	if err := mount.Unmount(probe); err != nil {
		t.Fatal(err)
	}
}

// podWith is a pod whose container mounts these volumes.
func podWith(volumes ...corev1.Volume) *core.Pod {
	c := core.Container{Name: "c"}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-1", Labels: map[string]string{"app": "web"}},
		Spec:       core.PodSpec{Volumes: volumes, Containers: []core.Container{c}},
	}
}

func configMapVolume(name string, optional bool, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items, Optional: &optional,
	}}}
}

func secretVolume() corev1.Volume {
	mode := int32(0o400)
	return corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: &mode}}}
}

func emptyDirVolume(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func downwardVolume() corev1.Volume {
	return corev1.Volume{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "c", Resource: "limits.cpu"}},
	}}}}
}

func tokenVolume() corev1.Volume {
	return corev1.Volume{Name: "api", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, Items: []corev1.KeyToPath{{Key: "k", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
		}}},
	}}}}
}

func expectFile(t *testing.T, want string, parts ...string) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(parts...)); err != nil || string(data) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Join(parts...), data, err, want)
	}
}

func mustMount(t *testing.T, m *Manager, pod *core.Pod) {
	t.Helper()
	if err := m.Mount(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}
