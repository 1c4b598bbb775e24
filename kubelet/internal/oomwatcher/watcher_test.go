package oomwatcher

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap/zaptest"
)

const (
	everywhere = "6,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0," +
		"global_oom,task_memcg=/user.slice,task=a,pid=1,uid=0,pid=4242,uid=0\n SUBSYSTEM=memory\n"
	inAGroup = "6,3,4,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=1,mems_allowed=0,oom_memcg=/kubepods," +
		"task_memcg=/kubepods/pod1,task=tail,pid=10598,uid=0\n"
)

// records is a log with some records, and what else a read may answer.
type records []any

func (r *records) Read(p []byte) (int, error) {
	next := (*r)[0]
	*r = (*r)[1:]
	if err, ok := next.(error); ok {
		return 0, &fs.PathError{Op: "read", Path: kernelLog, Err: err}
	}
	return copy(p, next.(string)), nil
}

// Only a machine that is out of memory is told of, and only when its kernel says so.
func TestWhoseMemoryIsShort(t *testing.T) {
	var told []string
	w := &Watcher{Report: func(message string) { told = append(told, message) }, Logger: zaptest.NewLogger(t)}
	log := &records{"6,1,1,-;usual", "", inAGroup, syscall.EPIPE, everywhere, "14" + strings.TrimPrefix(everywhere, "6"), fs.ErrClosed}
	if err := w.follow(log); err != nil {
		t.Fatal(err)
	}
	// A process chooses its name.
	if want := []string{"System OOM encountered, victim process: a,pid=1,uid=0, pid: 4242"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	if err := w.follow(&records{syscall.EIO}); !errors.Is(err, syscall.EIO) {
		t.Errorf("a log that can't be read: %v", err)
	}
}

// heard is a log that tells of what was read from it.
type heard struct {
	log  io.Reader
	told chan<- string
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.log.Read(p)
	h.told <- string(p[:n])
	return n, err
}

// The kernel's log is read from its end, a record at a time, and closing it ends a read that waits.
func TestTheKernelsLog(t *testing.T) {
	writer, err := os.OpenFile(kernelLog, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("the kernel's log can't be written to: %v", err)
	}
	defer writer.Close()
	write := func(what string) {
		if _, err := fmt.Fprintf(writer, "kctl %s %d: %s\n", t.Name(), os.Getpid(), what); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	log, err := open()
	if err != nil {
		t.Skipf("the kernel's log can't be read: %v", err)
	}
	defer log.Close()
	write("after")
	told, done := make(chan string), make(chan error, 1)
	w := &Watcher{Report: func(message string) { t.Errorf("told of %s", message) }, Logger: zaptest.NewLogger(t)}
	go func() { done <- w.follow(heard{log, told}) }()
	mine := fmt.Sprintf(";kctl %s %d: ", t.Name(), os.Getpid())
	for record := range told {
		if _, what, ok := strings.Cut(record, mine); ok {
			if what != "after\n" {
				t.Errorf("read %q first", what)
			}
			break
		}
	}
	log.Close()
	for ended := false; !ended; {
		select {
		case <-told:
		case err := <-done:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		}
	}
}
