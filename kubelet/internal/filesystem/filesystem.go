package filesystem

import (
	"errors"
	"fmt"
	"maps"
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

const (
	// answerWithin is how long a file system may take.
	answerWithin = 2 * time.Second
	// mostPatience is how long it may take to satisfy Answers if it has answered late before,
	// and patientFor is how long that counts.
	mostPatience = 30 * time.Second
	patientFor   = 5 * time.Minute
)

// Of returns the space of the file system that holds path. The error is the
// kernel's, and does not name the path.
//
// A file system that does not answer keeps one thread, however often it is asked for:
// until it answers, everyone gets ErrSilent.
func Of(path string) (Space, error) { return asked.about(path, false) }

// Answers returns an error if the file system that holds path does not answer: whoever asks
// it for anything else would wait with no way to give up. One that has answered after that, as
// a slow server does, is given twice as much time when it is asked again.
func Answers(path string) error {
	if _, err := asked.about(path, true); errors.Is(err, ErrSilent) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var asked = newQuestions(statfs)

// questions are those that have no answer yet, and those whose answer was late, by path.
type questions struct {
	statfs func(path string) (Space, error)

	mu      sync.Mutex
	pending map[string]*question
	late    map[string]lateness
}

type question struct {
	asked    time.Time
	answered chan struct{} // closed when the rest is there
	space    Space
	err      error
}

// lateness is how long an answer took, and when it came.
type lateness struct {
	took time.Duration
	at   time.Time
}

func newQuestions(statfs func(string) (Space, error)) *questions {
	return &questions{statfs: statfs, pending: map[string]*question{}, late: map[string]lateness{}}
}

func (q *questions) about(path string, patient bool) (Space, error) {
	q.mu.Lock()
	one := q.pending[path]
	if one == nil {
		one = &question{asked: time.Now(), answered: make(chan struct{})}
		q.pending[path] = one
		go q.ask(path, one)
	}
	within := answerWithin
	if patient {
		within = max(within, min(2*q.late[path].took, mostPatience))
	}
	q.mu.Unlock()
	timer := time.NewTimer(time.Until(one.asked.Add(within)))
	defer timer.Stop()
	select {
	case <-one.answered:
		return one.space, one.err
	case <-timer.C:
		return Space{}, ErrSilent
	}
}

// ask ends when the kernel answers.
func (q *questions) ask(path string, one *question) {
	one.space, one.err = q.statfs(path)
	now := time.Now()
	q.mu.Lock()
	delete(q.pending, path)
	delete(q.late, path)
	maps.DeleteFunc(q.late, func(_ string, l lateness) bool { return now.Sub(l.at) > patientFor })
	if took := now.Sub(one.asked); took > answerWithin {
		q.late[path] = lateness{took, now}
	}
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
