package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/pki"
)

const (
	fileName = "userns"
	maxFile  = 64 << 10
)

// Options are a Manager's parameters.
type Options struct {
	PodsDir string // has a directory for each pod, by its uid
	IDs     Range  // that pods may have
	PerPod  int64  // how many each gets
	Logger  *zap.Logger
}

// Manager knows which pod has which ids. It is safe for concurrent use.
type Manager struct {
	Options

	mu    sync.Mutex
	taken map[types.UID]Range
	next  int64 // where to look for a free range first
}

// New returns a Manager that knows the ranges that were assigned before.
func New(o Options) (*Manager, error) {
	m := &Manager{Options: o, taken: map[types.UID]Range{}, next: o.IDs.First}
	entries, err := os.ReadDir(o.PodsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for pods with user namespaces: %w", err)
	}
	for _, entry := range entries {
		uid := types.UID(entry.Name())
		given, err := read(m.file(uid))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotADirectory):
		case err != nil:
			// If the pod is still wanted, Of reads the file again, and fails.
			o.Logger.Warn("the ids of a pod's user namespace can't be read", zap.String("uid", string(uid)), zap.Error(err))
		default:
			m.taken[uid] = given
		}
	}
	return m, nil
}

// Allocate returns a pod's ids, which belong to it until Release.
func (m *Manager) Allocate(uid types.UID) (Range, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if given, ok := m.taken[uid]; ok {
		return given, nil
	}
	if _, err := read(m.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Range{}, fmt.Errorf("the ids of the pod's user namespace: %w", err)
	}
	free, err := m.free()
	if err != nil {
		return Range{}, err
	}
	if err := write(m.file(uid), free); err != nil {
		return Range{}, fmt.Errorf("writing down the ids of the pod's user namespace: %w", err)
	}
	m.taken[uid], m.next = free, free.end()
	return free, nil
}

// free finds a free range, looking first after the one that was assigned last,
// so that a range is not soon reused and a pod's remains don't soon belong to
// another.
func (m *Manager) free() (Range, error) {
	places := m.IDs.Count / m.PerPod
	start := (m.next - m.IDs.First) / m.PerPod
	for i := range places {
		candidate := Range{First: m.IDs.First + (start+i)%places*m.PerPod, Count: m.PerPod}
		if candidate.end() <= last && m.isFree(candidate) {
			return candidate, nil
		}
	}
	return Range{}, fmt.Errorf("no ids are left for a user namespace: %d pods use all of %d ids from %d",
		len(m.taken), m.IDs.Count, m.IDs.First)
}

func (m *Manager) isFree(candidate Range) bool {
	for _, given := range m.taken {
		if given.overlaps(candidate) {
			return false
		}
	}
	return true
}

// Release gives a pod's ids back. None of its processes may be left.
func (m *Manager) Release(uid types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.taken[uid]; !ok {
		return nil
	}
	if err := os.Remove(m.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("giving back the ids of a user namespace: %w", err)
	}
	delete(m.taken, uid)
	return nil
}

func (m *Manager) file(uid types.UID) string {
	return filepath.Join(m.PodsDir, string(uid), fileName)
}

// record is the file's form: upstream's.
type record struct {
	UIDMappings []mapping `json:"uidMappings"`
	GIDMappings []mapping `json:"gidMappings"`
}

type mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

var errNotADirectory = errors.New("not a pod's directory")

func read(path string) (Range, error) {
	if info, err := os.Stat(filepath.Dir(path)); err == nil && !info.IsDir() {
		return Range{}, errNotADirectory
	}
	file, err := os.Open(path)
	if err != nil {
		return Range{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return Range{}, err
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return Range{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(r.UIDMappings) != 1 || len(r.GIDMappings) != 1 || r.UIDMappings[0] != r.GIDMappings[0] {
		return Range{}, fmt.Errorf("%s: one mapping is expected, the same for users and groups", path)
	}
	one := r.UIDMappings[0]
	given := Range{First: int64(one.HostID), Count: int64(one.Length)}
	if one.ContainerID != 0 || given.First < block || given.Count == 0 || given.end() > 1<<32 {
		return Range{}, fmt.Errorf("%s: %d ids from %d are none for a pod", path, given.Count, given.First)
	}
	return given, nil
}

// write makes the file in one step: a kubelet that is killed meanwhile has
// assigned either nothing or the whole range.
func write(path string, given Range) error {
	one := []mapping{{HostID: uint32(given.First), Length: uint32(given.Count)}}
	content, err := json.Marshal(record{UIDMappings: one, GIDMappings: one})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return pki.WriteFile(path, content)
}
