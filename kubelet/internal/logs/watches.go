package logs

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Watches watch the logs of all followers that are given them, with one inotify
// instance: the kernel gives each user few (fs.inotify.max_user_instances, 128), and
// whoever may follow logs could take all of them from the node's other programs. The
// zero value is ready for use. It is safe for concurrent use.
type Watches struct {
	// change is held while followers come and go. notify must not wait for it: the
	// watcher may answer them only after an error of its own was received.
	change  sync.Mutex
	watcher *fsnotify.Watcher // nil if nobody follows
	dirs    map[string]int    // followers by the directory that is watched for them

	mu        sync.Mutex // of followers; notify holds it
	followers map[string]map[*follower]bool
}

// add has the follower notified from now on of what happens at its log's path.
func (w *Watches) add(f *follower) error {
	w.change.Lock()
	defer w.change.Unlock()
	if w.watcher == nil {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return fmt.Errorf("watching logs: %w", err)
		}
		w.watcher, w.dirs = watcher, map[string]int{}
		go w.notify(watcher)
	}
	w.insert(f)
	dir := filepath.Dir(f.log.path)
	if err := w.watcher.Add(dir); err != nil { // also if it is watched: it may be another directory by now
		w.drop(f)
		w.closeIfUnused()
		return fmt.Errorf("watching logs: %w", err)
	}
	w.dirs[dir]++
	return nil
}

// remove ends the notifications of a follower that was added.
func (w *Watches) remove(f *follower) {
	w.change.Lock()
	defer w.change.Unlock()
	w.drop(f)
	dir := filepath.Dir(f.log.path)
	if w.dirs[dir]--; w.dirs[dir] == 0 {
		delete(w.dirs, dir)
		_ = w.watcher.Remove(dir) // it may be gone
	}
	w.closeIfUnused()
}

// closeIfUnused ends notify when nobody follows.
func (w *Watches) closeIfUnused() {
	if len(w.dirs) == 0 {
		_ = w.watcher.Close() // it only read
		w.watcher = nil
	}
}

func (w *Watches) insert(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := f.log.path
	if w.followers == nil {
		w.followers = map[string]map[*follower]bool{}
	}
	if w.followers[path] == nil {
		w.followers[path] = map[*follower]bool{}
	}
	w.followers[path][f] = true
}

// drop returns when the follower's last notification has ended.
func (w *Watches) drop(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := f.log.path
	if delete(w.followers[path], f); len(w.followers[path]) == 0 {
		delete(w.followers, path)
	}
}

// notify passes on what the watcher reports, until it is closed.
func (w *Watches) notify(watcher *fsnotify.Watcher) {
	for {
		select {
		case event, ok := <-watcher.Events:
			if !ok {
				return
			}
			w.mu.Lock()
			for f := range w.followers[event.Name] {
				f.notify(event)
			}
			w.mu.Unlock()
		case _, ok := <-watcher.Errors:
			if !ok {
				return
			}
			w.mu.Lock()
			for _, followers := range w.followers {
				for f := range followers {
					f.wake() // events may be lost: look
				}
			}
			w.mu.Unlock()
		}
	}
}
