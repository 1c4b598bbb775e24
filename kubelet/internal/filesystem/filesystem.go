package filesystem

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Space is the size of a file system and how full it is, in bytes and inodes.
type Space struct {
	Capacity uint64
	Used     uint64
	// Available is for all users. Some file systems reserve space for root, which
	// is neither available nor used.
	Available  uint64
	Inodes     uint64 // 0 if there is no limit
	InodesFree uint64
}

// InodesUsed returns the number of inodes that are not free.
func (s Space) InodesUsed() uint64 { return s.Inodes - s.InodesFree }

// ErrSilent is the error about a file system that does not answer: its server may be
// away.
var ErrSilent = errors.New("file system does not answer")

// answerWithin is how long a file system may take.
const answerWithin = 2 * time.Second

// Of returns the space of the file system that holds path. The error is the
// kernel's, and does not name the path.
//
// A file system that does not answer keeps one thread, however often it is asked for:
// until it answers, everyone gets ErrSilent.
func Of(path string) (Space, error) { return asked.about(path) }

// Answers returns an error if the file system that holds path does not answer: whoever asks
// it for anything else would wait with no way to give up.
func Answers(path string) error {
	if _, err := Of(path); errors.Is(err, ErrSilent) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var asked = questions{pending: map[string]*question{}}

// questions are those that have no answer yet, by path.
type questions struct {
	mu      sync.Mutex
	pending map[string]*question
}

type question struct {
	answered chan struct{} // closed when the rest is there
	space    Space
	err      error
	silent   bool // somebody has waited in vain; guarded by questions.mu
}

func (q *questions) about(path string) (Space, error) {
	q.mu.Lock()
	one := q.pending[path]
	if one == nil {
		one = &question{answered: make(chan struct{})}
		q.pending[path] = one
		go q.ask(path, one)
	}
	silent := one.silent
	q.mu.Unlock()
	if silent {
		return Space{}, ErrSilent
	}
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case <-one.answered:
		return one.space, one.err
	case <-timer.C:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	one.silent = true
	return Space{}, ErrSilent
}

// ask ends when the kernel answers.
func (q *questions) ask(path string, one *question) {
	one.space, one.err = statfs(path)
	q.mu.Lock()
	delete(q.pending, path)
	q.mu.Unlock()
	close(one.answered)
}

func statfs(path string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Space{}, err
	}
	block := uint64(fs.Bsize)
	return Space{
		Capacity: fs.Blocks * block, Used: (fs.Blocks - fs.Bfree) * block, Available: fs.Bavail * block,
		Inodes: fs.Files, InodesFree: fs.Ffree,
	}, nil
}
