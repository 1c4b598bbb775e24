package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"gopkg.in/natefinch/lumberjack.v2"
)

// The formats of a log's lines.
const (
	FormatJSON   = "json"
	FormatLegacy = "legacy"
)

// LogOptions say where events are logged and how.
type LogOptions struct {
	Path                          string // "-" for standard output
	Format                        string
	MaxAge, MaxBackups, MaxSizeMB int
	Compress                      bool
}

// logFile writes one line per event.
type logFile struct {
	format string
	mu     sync.Mutex
	out    io.WriteCloser
	// torn says that the last line has no end: its writing failed in the middle, on a full
	// disk for example. What is written behind it would be unreadable, too.
	torn bool
}

// NewLog opens a log; a file is rotated by size and age.
func NewLog(o LogOptions) (Backend, error) {
	if o.Path == "-" {
		return &logFile{format: o.Format, out: unclosed{os.Stdout}}, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	// Open it once: a file that can't be written should be an error now and not at
	// the first event. It is private.
	file, err := os.OpenFile(o.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &logFile{format: o.Format, torn: endsTorn(o.Path), out: &lumberjack.Logger{
		Filename: o.Path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSizeMB, Compress: o.Compress,
	}}, nil
}

// endsTorn reports whether a log that a killed server left ends within a line, as far as
// that can be told: the server need not be allowed to read it, and a pipe has no end.
func endsTorn(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	if _, err := file.Seek(-1, io.SeekEnd); err != nil { // it is empty
		return false
	}
	last := []byte{'\n'}
	_, _ = file.Read(last)
	return last[0] != '\n'
}

// unclosed keeps standard output open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func (l *logFile) Name() string { return "log" }

// Parallel implements Backend: lines are in the order of the events.
func (l *logFile) Parallel() int { return 1 }

func (l *logFile) Close() error { return l.out.Close() }

func (l *logFile) Deliver(_, _ context.Context, events []*Event) error {
	lines := bytes.NewBufferString("\n") // written where a torn line has to be ended first
	for _, e := range events {
		if l.format == FormatLegacy {
			lines.WriteString(legacy(e))
			continue
		}
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := lines.Bytes()
	if !l.torn {
		whole = whole[1:]
	}
	n, err := l.out.Write(whole)
	if n > 0 {
		l.torn = whole[n-1] != '\n'
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// legacy is an event's line in the format from before JSON.
func legacy(e *Event) string {
	name := func(u *authenticationv1.UserInfo, none string) (string, string) {
		if u == nil || u.Username == "" {
			return none, none
		}
		groups := none
		if len(u.Groups) > 0 {
			groups = quoted(u.Groups)
		}
		return u.Username, groups
	}
	username, groups := name(&e.User, "<none>")
	as, asGroups := name(e.ImpersonatedUser, "<self>")
	if e.ImpersonatedUser == nil || len(e.ImpersonatedUser.Groups) == 0 {
		asGroups = "<lookup>"
	}
	namespace := "<none>"
	if e.ObjectRef != nil && e.ObjectRef.Namespace != "" {
		namespace = e.ObjectRef.Namespace
	}
	response := "<deferred>"
	if e.ResponseStatus != nil {
		response = strconv.Itoa(int(e.ResponseStatus.Code))
	}
	ip := "<unknown>"
	if len(e.SourceIPs) > 0 {
		ip = e.SourceIPs[0]
	}
	return fmt.Sprintf("%s AUDIT: id=%q stage=%q ip=%q method=%q user=%q groups=%q as=%q asgroups=%q user-agent=%q "+
		"namespace=%q uri=%q response=\"%s\"\n",
		e.RequestReceivedTimestamp.Format(time.RFC3339Nano), e.AuditID, e.Stage, ip, e.Verb, username, groups, as, asGroups, e.UserAgent,
		namespace, e.RequestURI, response)
}

func quoted(groups []string) string {
	out := make([]string, len(groups))
	for i, group := range groups {
		out[i] = strconv.Quote(group)
	}
	return strings.Join(out, ",")
}
