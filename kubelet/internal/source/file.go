package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

// File reads static pods from a manifest or a directory of them.
type File struct {
	Path     string
	NodeName string
	Period   time.Duration
	Clock    clock.Clock
	Logger   *zap.Logger

	newWatcher func() (*fsnotify.Watcher, error) // fsnotify's own if nil
}

// Run gives the path's pods to the mux whenever something in it changes, and at
// least once a period, until ctx ends. An unreadable manifest leaves the others
// as they are, and its own pod too, if it was valid before.
func (f *File) Run(ctx context.Context, mux *Mux) error {
	var watch manifestWatch
	defer watch.close()
	manifests := map[string]manifestFile{}
	timer := f.Clock.NewTimer(f.Period)
	defer timer.Stop()
	for {
		// Each time again: the path may have appeared, or reappeared, since.
		f.watch(&watch)
		if pods, err := f.read(manifests); err != nil {
			f.Logger.Warn("manifests cannot be read", zap.String("path", f.Path), zap.Error(err))
		} else {
			mux.Set(ctx, core.FileSource, pods)
		}
		timer.Reset(f.Period)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
		case event := <-watch.events:
			f.withdraw(ctx, mux, manifests, drain(event, watch.events))
		case err := <-watch.errors:
			f.Logger.Warn("watch of manifests failed", zap.String("path", f.Path), zap.Error(err))
		}
	}
}

// manifestWatch reports changes of the path. Without a watcher it never does.
type manifestWatch struct {
	watcher *fsnotify.Watcher
	events  chan fsnotify.Event
	errors  chan error
	missing string // why there is none, as reported
}

func (w *manifestWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // it only read
	}
}

// watch starts watching the path, unless it is watched. If the kernel has no
// inotify instance left, because root's pods use all of root's, the path is read
// once a period, with another attempt each time: a node whose control plane is in
// manifests must start all the same.
func (f *File) watch(w *manifestWatch) {
	err := f.makeWatcher(w)
	if err == nil {
		err = w.watcher.Add(f.Path)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		w.missing = ""
		return
	}
	if w.missing != err.Error() {
		f.Logger.Warn("manifests are only read periodically", zap.String("path", f.Path), zap.Error(err))
		w.missing = err.Error()
	}
}

func (f *File) makeWatcher(w *manifestWatch) error {
	if w.watcher != nil {
		return nil
	}
	newWatcher := f.newWatcher
	if newWatcher == nil {
		newWatcher = fsnotify.NewWatcher
	}
	watcher, err := newWatcher()
	if err != nil {
		return fmt.Errorf("making a watch: %w", err)
	}
	w.watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	return nil
}

// drain takes all waiting events, since one reading serves them all, and returns which files they say have gone.
func drain(event fsnotify.Event, events <-chan fsnotify.Event) (gone []string) {
	for {
		if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
			gone = append(gone, event.Name)
		}
		select {
		case event = <-events:
		default:
			return gone
		}
	}
}

// withdraw takes the pods of files that have gone away from the mux, and forgets the files. They may be back by
// now, as they were: moving a manifest away and back is how people restart a static pod.
func (f *File) withdraw(ctx context.Context, mux *Mux, manifests map[string]manifestFile, gone []string) {
	before := len(manifests)
	for _, path := range gone {
		delete(manifests, path)
	}
	if len(manifests) == before {
		return
	}
	var left []*core.Pod
	for _, path := range slices.Sorted(maps.Keys(manifests)) {
		left = append(left, manifests[path].pods...)
	}
	mux.Set(ctx, core.FileSource, left)
}

// manifestFile is what is known of a file.
type manifestFile struct {
	sum     [sha256.Size]byte // of the content that was read last
	pods    []*core.Pod       // of the last valid content
	problem error             // of the last content; it is logged when it changes
}

// errUnread is the warning about a manifest of which the first document is read.
var errUnread = errors.New(unread)

// read returns all pods of the path, by what is known of its files, which is updated.
func (f *File) read(manifests map[string]manifestFile) ([]*core.Pod, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	present := make(map[string]bool, len(files))
	var all []*core.Pod
	for _, path := range files {
		next, err := f.readFile(path, manifests[path])
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went while we looked
		}
		if err != nil {
			next = manifestFile{pods: manifests[path].pods, problem: err}
		}
		f.report(path, next.problem, manifests[path].problem)
		present[path], manifests[path] = true, next
		all = append(all, next.pods...)
	}
	maps.DeleteFunc(manifests, func(path string, _ manifestFile) bool { return !present[path] })
	return all, nil
}

// report logs what is wrong with a file, unless that was so before.
func (f *File) report(path string, problem, before error) {
	switch {
	case problem == nil || before != nil && before.Error() == problem.Error():
	case errors.Is(problem, errUnread):
		f.Logger.Warn(unread, zap.String("file", path))
	default:
		f.Logger.Warn("manifest ignored", zap.String("file", path), zap.Error(problem))
	}
}

// files are the manifests of the path, in the order of their names. A path that
// does not exist has none. Hidden files are left out: editors put theirs beside
// the manifest.
func (f *File) files() ([]string, error) {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{filepath.Clean(f.Path)}, nil // the watch's name for it
	}
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(f.Path, entry.Name()))
		}
	}
	return files, nil
}

// readFile returns what is known of a file now. Its content is decoded only if it is not the
// one that was decoded before: all files are read whenever one of them changes, and once a
// period, and decoding takes far longer than reading.
func (f *File) readFile(path string, before manifestFile) (manifestFile, error) {
	// A pipe would otherwise block us for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return manifestFile{}, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return manifestFile{}, errors.Join(err, errors.New("not a regular file"))
	}
	data, err := readManifest(file)
	if err != nil {
		return manifestFile{}, err
	}
	sum := sha256.Sum256(data)
	if sum == before.sum {
		return before, nil
	}
	now := manifestFile{sum: sum, pods: before.pods}
	if pods, err := podsOf(data, origin{source: core.FileSource, location: path, nodeName: f.NodeName}); err != nil {
		now.problem = err
	} else if now.pods = pods; hasUnread(data) {
		now.problem = errUnread
	}
	return now, nil
}
