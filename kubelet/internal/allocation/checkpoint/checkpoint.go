// Package checkpoint keeps what pods were granted, and what they run with, in the
// kubelet's directory. A kubelet that starts reads there how far a resize was, which a
// pod's status in the API need not tell.
//
// Its two files are upstream's, so that each kubelet goes on where the other one ended.
// Package kubelet runs it. It decides nothing.
package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/allocation"
	"kctl/proto/backoff"
	"kctl/proto/pki"
)

// Upstream's names.
const (
	grantedFile = "allocated_pods_state"
	actualFile  = "actuated_pods_state"
)

const (
	// together is how long changes are waited for that can be written with the first one.
	together = 100 * time.Millisecond
	// retry is how long to wait after a failure, such as a full disk.
	retry = 10 * time.Second
	// writing is longer than a file is being written.
	writing = time.Minute
)

// file is what is in a file: the data is the JSON of contents.
type file struct {
	Data     string `json:"data"`
	Checksum uint32 `json:"checksum"`
}

type contents struct {
	Entries map[types.UID]entry `json:"entries,omitempty"`
}

type entry struct {
	ContainerResources map[string]corev1.ResourceRequirements
	PodLevelResources  *corev1.ResourceRequirements
	// EmptyDirVolumeLimits is null: volumes are not resized.
	EmptyDirVolumeLimits map[string]any
}

// Keeper keeps the files of one kubelet. It is safe for concurrent use.
type Keeper struct {
	Dir     string
	Manager *allocation.Manager
	Clock   clock.Clock
	Logger  *zap.Logger

	mu      sync.Mutex
	written map[string][]byte
}

// Load restores what the files have. A file that can't be read does not keep the other
// from being restored. What a kubelet was writing when it was killed is removed.
func (k *Keeper) Load() error {
	k.removeUnfinished()
	granted, err := read(filepath.Join(k.Dir, grantedFile))
	actual, alsoErr := read(filepath.Join(k.Dir, actualFile))
	records := map[types.UID]allocation.Record{}
	for uid, e := range granted {
		records[uid] = allocation.Record{Granted: e.resources()}
	}
	for uid, e := range actual {
		records[uid] = allocation.Record{Granted: records[uid].Granted, Actual: e.resources()}
	}
	k.Manager.Restore(records)
	return errors.Join(err, alsoErr)
}

// removeUnfinished spares what is new: another kubelet with this directory may still run and be
// writing it, as one that is being replaced.
func (k *Keeper) removeUnfinished() {
	unfinished, _ := fs.Glob(os.DirFS(k.Dir), ".*_pods_state.*") // the pattern is a good one, whatever Dir is called
	for _, name := range unfinished {
		path := filepath.Join(k.Dir, name)
		info, err := os.Lstat(path)
		if err == nil && k.Clock.Since(info.ModTime()).Abs() < writing {
			continue
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.Logger.Warn("what is left of an earlier kubelet's records can't be removed", zap.Error(err))
		}
	}
}

// Run writes the files whenever something changes, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.Manager.Changed():
		}
		for wait := together; ; wait = retry {
			if backoff.Sleep(ctx, k.Clock, wait) != nil {
				return nil
			}
			err := k.Save()
			if err == nil {
				break
			}
			if wait == together { // once, and not at each of the next tries
				k.Logger.Warn("what pods were granted can't be recorded, will retry", zap.Error(err))
			}
		}
	}
}

// Save writes what is to be recorded now. What must not be done twice, or undone, by a kubelet
// that starts after this one was killed does not wait for Run.
func (k *Keeper) Save() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	granted, actual := map[types.UID]entry{}, map[types.UID]entry{}
	for uid, record := range k.Manager.Records() {
		if record.Granted != nil {
			granted[uid] = entryOf(record.Granted)
		}
		if record.Actual != nil {
			actual[uid] = entryOf(record.Actual)
		}
	}
	return errors.Join(k.write(grantedFile, granted), k.write(actualFile, actual))
}

func (k *Keeper) write(name string, entries map[types.UID]entry) error {
	data, err := json.Marshal(contents{entries})
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	text, err := json.Marshal(file{string(data), checksum(string(data))})
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if bytes.Equal(text, k.written[name]) {
		return nil
	}
	path := filepath.Join(k.Dir, name)
	if err := pki.WriteFile(path, text); err != nil {
		// What is there is not so any more, and a kubelet that starts would believe it rather than
		// the pods' statuses.
		delete(k.written, name)
		if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return errors.Join(err, gone)
		}
		return err
	}
	if k.written == nil {
		k.written = map[string][]byte{}
	}
	k.written[name] = text
	return nil
}

func read(path string) (map[types.UID]entry, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if sum := checksum(f.Data); sum != f.Checksum {
		return nil, fmt.Errorf("%s: its checksum is %d, but the file says %d", path, sum, f.Checksum)
	}
	var c contents
	if err := json.Unmarshal([]byte(f.Data), &c); err != nil {
		return nil, fmt.Errorf("%s: its data: %w", path, err)
	}
	return c.Entries, nil
}

// checksum is upstream's, which has the type of the data in it.
func checksum(data string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte("(string)" + data)) // it does not fail
	return sum.Sum32()
}

func (e entry) resources() map[string]corev1.ResourceRequirements {
	all := map[string]corev1.ResourceRequirements{}
	maps.Copy(all, e.ContainerResources)
	if e.PodLevelResources != nil {
		all[allocation.Pod] = *e.PodLevelResources
	}
	return all
}

func entryOf(resources map[string]corev1.ResourceRequirements) entry {
	e := entry{ContainerResources: map[string]corev1.ResourceRequirements{}}
	for name, r := range resources {
		if name == allocation.Pod {
			e.PodLevelResources = &r
			continue
		}
		e.ContainerResources[name] = r
	}
	return e
}
