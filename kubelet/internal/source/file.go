package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	good := map[string][]*core.Pod{}
	reported := map[string]string{}
	timer := f.Clock.NewTimer(f.Period)
	defer timer.Stop()
	for {
		// Each time again: the path may have appeared, or reappeared, since.
		f.watch(&watch)
		if pods, err := f.read(good, reported); err != nil {
			f.Logger.Warn("manifests cannot be read", zap.String("path", f.Path), zap.Error(err))
		} else {
			mux.Set(ctx, core.FileSource, pods)
		}
		timer.Reset(f.Period)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
		case <-watch.events:
			drain(watch.events)
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

// drain takes all waiting events: one reading serves them all.
func drain(events <-chan fsnotify.Event) {
	for {
		select {
		case <-events:
		default:
			return
		}
	}
}

// read returns all pods of the path. good has the last valid pods of each file,
// reported its last error; both are updated.
func (f *File) read(good map[string][]*core.Pod, reported map[string]string) ([]*core.Pod, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	var all []*core.Pod
	for _, path := range files {
		present[path] = true
		pods, more, err := f.readFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			present[path] = false // it went while we looked
			continue
		}
		switch {
		case err != nil:
			if reported[path] != err.Error() {
				f.Logger.Warn("manifest ignored", zap.String("file", path), zap.Error(err))
				reported[path] = err.Error()
			}
			pods = good[path]
		case more:
			if reported[path] != unread {
				f.Logger.Warn(unread, zap.String("file", path))
				reported[path] = unread
			}
		default:
			delete(reported, path)
		}
		good[path] = pods
		all = append(all, pods...)
	}
	for path := range good {
		if !present[path] {
			delete(good, path)
			delete(reported, path)
		}
	}
	return all, nil
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
		return []string{f.Path}, nil
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

// readFile returns a file's pods, and whether there is more in it that is not read.
func (f *File) readFile(path string) (pods []*core.Pod, more bool, err error) {
	// A pipe would otherwise block us for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false, errors.Join(err, errors.New("not a regular file"))
	}
	data, err := readManifest(file)
	if err != nil {
		return nil, false, err
	}
	pods, err = decodePods(data)
	if err != nil {
		return nil, false, err
	}
	for _, pod := range pods {
		if err := complete(pod, origin{source: core.FileSource, location: path, nodeName: f.NodeName}); err != nil {
			return nil, false, err
		}
	}
	return pods, hasUnread(data), nil
}
