package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is one of a cluster's processes.
type program struct {
	name string
	path string
	args []string
	// flags are those among args that the user asked for, now or an earlier time, and so
	// is etcd, an API server's --etcd-servers.
	flags, etcd string
	// address is where it serves, "" for nowhere; ready returns nil once it does its work,
	// else what it waits for.
	address string
	ready   func(ctx context.Context) error
}

const (
	readyWithin = 60 * time.Second
	readyEvery  = 20 * time.Millisecond
	execWithin  = time.Second
	// logTail is how much of a program's log is shown when it ends too early.
	logTail = 1500
	// fullLog is how long a log is that a start of its program does not go on with.
	fullLog = 16 << 20
)

// pid returns the process id of a running program of this cluster, or 0. A
// stale file, whose number another process has by now, counts as not running:
// all our programs have the cluster's directory on their command line.
func (l Layout) pid(name string) int {
	data, err := os.ReadFile(l.PIDFile(name))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0
	}
	awaitExec(pid)
	if !l.ownsProcess(pid) {
		return 0
	}
	return pid
}

// awaitExec returns once a process has a command line, if it will have one. A process that
// becomes another program has none for a moment, in which it has an executable already:
// zombies and the kernel's threads have neither. The bound is for a program that has wiped
// its own.
func awaitExec(pid int) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	for deadline := time.Now().Add(execWithin); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil || len(cmdline) > 0 {
			return
		}
		if _, err := os.Readlink(filepath.Join(proc, "exe")); err != nil {
			return
		}
	}
}

// ownsProcess reports whether a live process has a path below the cluster's directory
// on its command line.
func (l Layout) ownsProcess(pid int) bool {
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && namesBelow(cmdline, l.Dir) // empty for zombies
}

// namesBelow reports whether a command line has a path below dir, as an argument of its own,
// as a flag's value (--config=/dir/file), or in a URL (unix:///dir/socket). The path of
// another directory may have that of this one at its end: /srv/kctl and /kctl.
func namesBelow(cmdline []byte, dir string) bool {
	for argument := range bytes.SplitSeq(cmdline, []byte{0}) {
		if _, value, isFlag := bytes.Cut(argument, []byte("=")); isFlag && bytes.HasPrefix(argument, []byte("-")) {
			argument = value
		}
		if _, path, isURL := bytes.Cut(argument, []byte("://")); isURL {
			argument = path
		}
		if bytes.HasPrefix(argument, []byte(dir+"/")) {
			return true
		}
	}
	return false
}

// start runs p in a session of its own, so that it outlives this command, and
// waits until it is ready. It does nothing if p runs already.
func (l Layout) start(ctx context.Context, p program) (started bool, err error) {
	if pid := l.pid(p.name); pid != 0 {
		err := l.waitReady(ctx, p, func() bool { return l.pid(p.name) == 0 })
		if err != nil && ctx.Err() == nil && l.pid(p.name) != 0 {
			err = fmt.Errorf("%w\n%s was already running: if it hangs, end it with `kill -9 %d` and run this again", err, p.name, pid)
		}
		return false, err
	}
	ended, err := l.spawn(p)
	if err != nil {
		return false, err
	}
	return true, l.waitReady(ctx, p, ended)
}

// wasRunning says so of a program that start has left alone. What the user asks for now,
// or has built since, is for its next start, which may be long after, and at which nobody
// is asked.
func (l Layout) wasRunning(p program) string {
	const running = "was running"
	now := l.commandLine(p.name)
	if now == nil {
		return running
	}
	only := func(some, others []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(some), func(arg string) bool { return slices.Contains(others, arg) }), " ")
	}
	var changes []string
	if more := only(p.args, now); more != "" {
		changes = append(changes, "with "+more)
	}
	if less := only(now, p.args); less != "" {
		changes = append(changes, "without "+less)
	}
	what := []string{"it " + strings.Join(changes, ", ")}
	if path := l.replaced(p); path != "" {
		what = append([]string{"what is in " + path + " now"}, changes...)
	} else if len(changes) == 0 {
		return running
	}
	return fmt.Sprintf("%s; `kill %d`, and this command again, would start %s", running, l.pid(p.name), strings.Join(what, ", "))
}

// runsOn says of a program that it was started before it was left out: that ends nothing.
func (l Layout) runsOn(name string) string {
	return fmt.Sprintf("runs on: it is left out from its next start; `kill %d` ends it", l.pid(name))
}

// replaced is the file of a program that runs, if that is not the one that was started: a
// newer build, for example. It is "" if that can't be told.
func (l Layout) replaced(p program) string {
	path, err := exec.LookPath(p.path)
	if err != nil {
		return ""
	}
	now, err := os.Stat(path)
	if err != nil {
		return ""
	}
	started, err := os.Stat(filepath.Join("/proc", strconv.Itoa(l.pid(p.name)), "exe"))
	if err != nil || os.SameFile(started, now) {
		return ""
	}
	return path
}

// spawn starts p; ended tells whether it has ended since. A program that has
// just been started may have no command line yet to recognise it by.
//
// The process writes its PID file itself, before it becomes p: if this command were killed
// between the two, p would run, and neither up nor down would know.
func (l Layout) spawn(p program) (ended func() bool, err error) {
	log, err := l.openLog(p.name)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close()
	// Not CommandContext: the program must outlive ctx.
	const becomeProgram = `echo $$ >"$0" && exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", becomeProgram, l.PIDFile(p.name), p.path}, p.args...)...)
	cmd.Dir = l.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	// Reaps the program if it ends while this command still runs.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	return func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, nil
}

// openLog opens a program's log, to append to it. A long one becomes the former log, in place of
// that of an earlier time.
func (l Layout) openLog(name string) (*os.File, error) {
	path := l.Log(name)
	if info, err := os.Stat(path); err == nil && info.Size() > fullLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func (l Layout) waitReady(ctx context.Context, p program, ended func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	var waitingFor error
	for {
		now := p.ready(ctx)
		if now == nil {
			return nil
		}
		if waitingFor == nil || ctx.Err() == nil { // the last, cut short, says less than the one before
			waitingFor = now
		}
		if ended() {
			return fmt.Errorf("%s ended:\n%s%s", p.name, l.logTail(p.name), p.kept())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) { // not the program's fault
				return ctx.Err()
			}
			if failed := (*url.Error)(nil); errors.As(waitingFor, &failed) {
				waitingFor = failed.Err // of the other kctl says no more than that its server can't be reached
			}
			return fmt.Errorf("%s is not ready: %w; the end of %s:\n%s%s", p.name, waitingFor, l.Log(p.name), l.logTail(p.name), p.kept())
		}
	}
}

// kept tells, of a program that can't do its work, what of an earlier time may be why.
func (p program) kept() string {
	text := ""
	if p.etcd != "" {
		text += fmt.Sprintf("\n(its etcd, %q, is the one of --etcd-servers, now or an earlier time; --etcd-servers names another, "+
			"\"--etcd-servers=\" the one inside the API server, where nothing is of what that one holds)", p.etcd)
	}
	if p.flags != "" {
		text += fmt.Sprintf("\n(its flags %q are kept for the next time; --%s-flags gives it others, or none)", p.flags, p.name)
	}
	return text
}

// logTail is the end of a program's log.
func (l Layout) logTail(name string) string {
	data, err := os.ReadFile(l.Log(name))
	if err != nil {
		return err.Error()
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
		if _, rest, ok := bytes.Cut(data, []byte("\n")); ok {
			data = rest
		}
	}
	return strings.TrimRight(string(data), "\n")
}

// stop ends a program: SIGTERM, and SIGKILL after grace. It waits until the
// process is gone.
func (l Layout) stop(ctx context.Context, name string, grace time.Duration) error {
	if pid := l.pid(name); pid != 0 {
		if err := terminate(ctx, pid, grace); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	if err := os.Remove(l.PIDFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// terminate ends a process through a pidfd, which can never refer to another process.
func terminate(ctx context.Context, pid int, grace time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, 10 * time.Second}} {
		if err := unix.PidfdSendSignal(fd, step.signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
		ended, err := waitEnd(ctx, fd, step.wait)
		if ended || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not exit", pid)
}

func waitEnd(ctx context.Context, pidfd int, wait time.Duration) (ended bool, err error) {
	deadline := time.Now().Add(wait)
	for ctx.Err() == nil {
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		// Short polls, so that the end of ctx is seen too.
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(min(left, 100*time.Millisecond).Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("wait for process: %w", err)
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, ctx.Err()
}
