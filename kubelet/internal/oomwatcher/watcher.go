package oomwatcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"go.uber.org/zap"
)

const (
	kernelLog = "/dev/kmsg"

	// longestRecord is more than the kernel makes of one message (CONSOLE_EXT_LOG_MAX): a read
	// that is too short for its record fails.
	longestRecord = 8 << 10

	// firstOtherPriority is the lowest priority of records that are not the kernel's: it holds the
	// facility in all but its last three bits, and the kernel's is 0.
	firstOtherPriority = 8
)

// killed is what the kernel says of a process that it ended for want of memory anywhere. For a
// control group at its limit, the group stands in place of global_oom.
var killed = regexp.MustCompile(`^oom-kill:.*,global_oom,task_memcg=.*,task=(.*),pid=(\d+),uid=\d+$`)

// Watcher tells Report, in the words of an event, of each process that was ended.
type Watcher struct {
	Report func(message string)
	Logger *zap.Logger
}

// Run reads until ctx is done. Where the log may not be read, as in most containers, it says so in its
// own log, and returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	log, err := open()
	if err != nil {
		w.Logger.Info("no events will tell of a machine that is out of memory", zap.Error(err))
		return nil
	}
	defer log.Close()
	defer context.AfterFunc(ctx, func() { log.Close() })()
	return w.follow(log)
}

// open opens the kernel's log at its end, so that Close ends a read that waits.
func open() (*os.File, error) {
	log, err := os.OpenFile(kernelLog, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		log.Close()
		return nil, err
	}
	return log, nil
}

// follow reads records until the log is closed.
func (w *Watcher) follow(log io.Reader) error {
	record := make([]byte, longestRecord)
	for {
		n, err := log.Read(record)
		switch {
		case err == nil:
			if message, ok := parse(string(record[:n])); ok {
				w.Logger.Info("the machine is out of memory", zap.String("event", message))
				w.Report(message)
			}
		case errors.Is(err, syscall.EPIPE): // records were overwritten before they were read
		case errors.Is(err, fs.ErrClosed):
			return nil
		default:
			return fmt.Errorf("read the kernel's log: %w", err)
		}
	}
}

// parse returns what an event says of a record, "PRIORITY,NUMBER,TIME,FLAGS;MESSAGE\n" with more
// lines for its properties, if it tells of a process that was ended.
func parse(record string) (message string, ok bool) {
	head, text, _ := strings.Cut(record, ";")
	priority, _, _ := strings.Cut(head, ",")
	if p, err := strconv.Atoi(priority); err != nil || p >= firstOtherPriority {
		return "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	found := killed.FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	return fmt.Sprintf("System OOM encountered, victim process: %s, pid: %s", found[1], found[2]), true
}
