package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/keylock"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/claim"
	"kctl/kubelet/internal/volume/emptydir"
	"kctl/kubelet/internal/volume/projected"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// mountTimeout bounds one attempt to make a pod's volumes: upstream's, after
// which the pod's events say what is missing, and the next sync tries again.
const mountTimeout = 123 * time.Second

// attemptTimeout bounds the wait for the API when a pod can do without its
// answer.
const attemptTimeout = 5 * time.Second

// Objects reads the contents of volumes.
type Objects interface {
	projected.Objects
	claim.Objects
	// Register and Unregister say whose objects to keep cached.
	Register(pod *core.Pod)
	Unregister(uid types.UID)
	// Renew has the pod's objects read again, however new those in the cache are.
	Renew(uid types.UID)
	// Prefetch reads everything that the pod refers to, in parallel.
	Prefetch(ctx context.Context, pod *core.Pod)
}

// Config is a Manager's parameters.
type Config struct {
	RootDir string // where pods/UID/ is: /var/lib/kubelet
	Objects Objects
	Clock   clock.WithTicker
	Logger  *zap.Logger
	// Allocatable is what the node has for pods: the value of limits that a
	// container does not set, and the bound of volumes in memory. May be nil.
	Allocatable func() corev1.ResourceList
	// Labels are the node's, which decide about the node affinity of persistent volumes.
	Labels func() map[string]string
	// Warn receives messages for people about volumes that were made nevertheless.
	Warn func(pod *core.Pod, reason, message string)
	// Failed is called when mounted volumes keep outdated content because the new
	// one can't be written. May be nil.
	Failed func(pod *core.Pod, err error)
	// Observe is called for each volume that was made or removed, or could not be,
	// with upstream's names of the plugin and the operation. May be nil.
	Observe func(plugin, operation string, took time.Duration, err error)
}

// Manager makes the volumes of all pods on the node. Its methods may be called
// from several goroutines; what is done to one pod is done one at a time.
type Manager struct {
	config   Config
	wake     chan struct{}         // holds one token when a pod has become due at once
	mounting keylock.Locks[string] // of persistent volumes that are being mounted, by name

	mu   sync.Mutex
	pods map[types.UID]*podVolumes
}

// podVolumes is one pod's volumes as far as this Manager made them.
type podVolumes struct {
	// lock holds one token: the goroutine that put it there may work on the pod's volumes.
	lock chan struct{}
	// stale says that the last attempt to update the contents failed; the holder of
	// lock owns it.
	stale bool

	// The rest is guarded by Manager.mu.
	gone    bool
	pod     *core.Pod          // whose metadata the contents show
	mounted map[string]*volume // by name
	due     time.Time          // of the next look for new content; zero for never
}

// volume is one volume that is ready for containers.
type volume struct {
	plugin     string // as upstream calls it
	persistent string // the name of the persistent volume, of which it is a mount; "" for others
	path       string
	readOnly   bool
	ours       bool // not the host's: may be relabelled for SELinux
	image      bool // the runtime's to mount
	groups     []int64
}

// NewManager returns a Manager that has mounted nothing yet.
func NewManager(config Config) (*Manager, error) {
	if !filepath.IsAbs(config.RootDir) {
		return nil, fmt.Errorf("volumes: the root directory %q must be an absolute path", config.RootDir)
	}
	return &Manager{config: config, wake: make(chan struct{}, 1), pods: map[types.UID]*podVolumes{}}, nil
}

func (m *Manager) allocatable() corev1.ResourceList {
	if m.config.Allocatable == nil {
		return nil
	}
	return m.config.Allocatable()
}

func (m *Manager) podDir(uid types.UID) string {
	return podfiles.PodDir(m.config.RootDir, uid)
}

// volumeDir is the volume's directory; empty for kinds that are elsewhere.
func (m *Manager) volumeDir(uid types.UID, kind, name string) string {
	directory, ok := directoryNames[kind]
	if !ok {
		return ""
	}
	return filepath.Join(m.podDir(uid), "volumes", directory, name)
}

// Dir is where a pod's volume is; empty for those that have no directory of their own.
func (m *Manager) Dir(uid types.UID, volume *corev1.Volume) string {
	if volume.PersistentVolumeClaim != nil || volume.Ephemeral != nil {
		return m.claimDir(uid, volume.Name)
	}
	return m.volumeDir(uid, kindOf(volume.VolumeSource), volume.Name)
}

// Mount makes all of the pod's volumes that its containers mount, and returns when they are ready. Call
// it whenever the pod is synced: it costs nothing if there is nothing to do. If a volume already has
// content, failing to get newer content is not an error here; Run handles that.
func (m *Manager) Mount(ctx context.Context, pod *core.Pod) error {
	if m.ready(pod) {
		return nil
	}
	if err := Check(pod); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	p := m.register(pod)
	if err := p.take(ctx); err != nil {
		return fmt.Errorf("waiting for the pod's volumes: %w", err)
	}
	defer p.give()
	if m.isGone(p) {
		return errors.New("the pod's volumes have been unmounted")
	}
	m.config.Objects.Register(pod)
	return m.mountAll(ctx, p, pod)
}

// ready tells whether everything is mounted, and shows the pod as it is now.
func (m *Manager) ready(pod *core.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod.UID]
	return p != nil && !p.gone && p.pod != nil && len(p.mounted) == len(usedVolumes(pod)) && sameContent(p.pod, pod)
}

// register returns the pod's entry, which may have been there before.
func (m *Manager) register(pod *core.Pod) *podVolumes {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod.UID]
	if p == nil {
		p = &podVolumes{lock: make(chan struct{}, 1), mounted: map[string]*volume{}}
		m.pods[pod.UID] = p
	}
	return p
}

func (m *Manager) allMounted(p *podVolumes, pod *core.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.pod != nil && len(p.mounted) == len(usedVolumes(pod))
}

func (m *Manager) isGone(p *podVolumes) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.gone
}

func (p *podVolumes) take(ctx context.Context) error {
	select {
	case p.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *podVolumes) give() { <-p.lock }

// mountAll makes the missing volumes in parallel, and meanwhile reads the
// objects that only containers need. Existing volumes are left to the next
// refresh, which is due at once if the pod has changed.
func (m *Manager) mountAll(ctx context.Context, p *podVolumes, pod *core.Pod) error {
	volumes := usedVolumes(pod)
	errs := make([]error, len(volumes))
	var work sync.WaitGroup
	if !m.allMounted(p, pod) {
		work.Go(func() {
			attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
			defer cancel()
			m.config.Objects.Prefetch(attempt, pod)
		})
	}
	for i, volume := range volumes {
		work.Go(func() { errs[i] = m.mountOne(ctx, p, pod, volume) })
	}
	work.Wait()

	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !refreshable(pod):
		p.due = time.Time{}
	case p.pod != nil && !sameContent(p.pod, pod):
		// People annotate a pod to have it see new content at once.
		m.config.Objects.Renew(pod.UID)
		p.due = m.config.Clock.Now()
		select {
		case m.wake <- struct{}{}:
		default: // Run has been told already
		}
	case p.due.IsZero():
		p.due = m.config.Clock.Now().Add(nextRefresh())
	}
	p.pod = pod
	return errors.Join(errs...)
}

func (m *Manager) mountOne(ctx context.Context, p *podVolumes, pod *core.Pod, spec *corev1.Volume) error {
	m.mu.Lock()
	_, done := p.mounted[spec.Name]
	m.mu.Unlock()
	if done {
		return nil
	}
	began := m.config.Clock.Now()
	made, err := m.make(ctx, pod, spec)
	if m.config.Observe != nil && made.plugin != "" {
		m.config.Observe(made.plugin, "volume_mount", m.config.Clock.Since(began), err)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	p.mounted[spec.Name] = made
	m.mu.Unlock()
	return nil
}

// Count returns how many volumes there should be and how many there are, by
// upstream's names of their plugins.
func (m *Manager) Count() (desired, actual map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	desired, actual = map[string]int{}, map[string]int{}
	for _, p := range m.pods {
		if p.pod == nil {
			continue
		}
		for _, spec := range usedVolumes(p.pod) {
			if made := p.mounted[spec.Name]; made != nil {
				desired[made.plugin]++
				actual[made.plugin]++
			} else if core.ClaimName(p.pod, spec) == "" { // what is claimed may be of any plugin
				desired[pluginName(kindOf(spec.VolumeSource))]++
			}
		}
	}
	return desired, actual
}

// make sets up a volume. If it fails, the result contains as much as is known.
func (m *Manager) make(ctx context.Context, pod *core.Pod, spec *corev1.Volume) (*volume, error) {
	if core.ClaimName(pod, spec) != "" {
		return m.makeClaimed(ctx, pod, spec)
	}
	kind := kindOf(spec.VolumeSource)
	isImage := kind == "image"
	made := &volume{
		plugin: pluginName(kind), path: m.volumeDir(pod.UID, kind, spec.Name),
		readOnly: isImage || hasContent(kind), ours: kind != "hostPath", image: isImage,
	}
	if err := m.makeOwn(ctx, pod, spec, kind, made.path); err != nil {
		return made, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", spec.Name, inOneLine(err))
	}
	if kind == "hostPath" {
		made.path = spec.HostPath.Path
	}
	return made, nil
}

// makeOwn sets up a volume of the pod's own that this Manager has not set up yet; an
// earlier one may have.
func (m *Manager) makeOwn(ctx context.Context, pod *core.Pod, spec *corev1.Volume, kind, dir string) error {
	if kind == "emptyDir" {
		return m.makeEmptyDir(pod, spec, dir)
	}
	if dir != "" {
		if err := makeDirectories(m.podDir(pod.UID), dir); err != nil {
			return err
		}
	}
	if !hasContent(kind) || !atomic.Complete(dir) {
		return m.setUp(ctx, pod, spec, kind, dir)
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := m.setUp(attempt, pod, spec, kind, dir)
	if err == nil || ctx.Err() != nil || !isAway(err) {
		return err
	}
	m.config.Logger.Warn("volume keeps the content it had: the API can't be reached",
		daemon.PodFields(pod), zap.String("volume", spec.Name), zap.Error(err))
	return nil
}

// makeEmptyDir makes an emptyDir once. The mark that says so is upstream's, so that either kubelet
// leaves alone what its pod has made of the owner and the mode since the other has made it.
func (m *Manager) makeEmptyDir(pod *core.Pod, spec *corev1.Volume, dir string) error {
	mark := filepath.Join(m.podDir(pod.UID), emptyDirMarks, spec.Name, "ready")
	if done, err := emptydir.IsSetUp(dir, mark, spec.EmptyDir); done || err != nil {
		return err
	}
	// A mark of what is no longer there would hide that the next attempt was cut short.
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDirectories(m.podDir(pod.UID), dir); err != nil {
		return err
	}
	if err := emptydir.SetUp(dir, pod, spec.EmptyDir, m.allocatable()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(mark), 0o750); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o640)
}

// makeDirectories makes dir and its parents up to the pod's directory, which
// only root can enter: containers reach their volumes through mounts.
func makeDirectories(podDir, dir string) error {
	if err := os.MkdirAll(podDir, 0o750); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.Chmod(dir, 0o777) // whatever the umask is
}
