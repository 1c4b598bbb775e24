package server

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os/exec"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxLogLines    = 100_000
	maxLogServices = 4
	// logQueryTimeout bounds how long the journal is read for one request.
	logQueryTimeout = 30 * time.Second
)

// serviceName is what may be the name of a service: it becomes part of a command and of a path.
var serviceName = regexp.MustCompile(`^[a-zA-Z0-9@:_.-]{1,256}$`)

// logQuery asks for the logs of services, or for one file, of the node (KEP-2258).
type logQuery struct {
	services, files []string
	since, until    time.Time
	tail, boot      *int
	pattern         string
}

// logQueryOf reads a query; nil if it is none. The errors are about what can't be understood.
func logQueryOf(values url.Values) (*logQuery, field.ErrorList) {
	q, errs := logQuery{pattern: values.Get("pattern")}, field.ErrorList{}
	for _, asked := range values["query"] {
		switch {
		case strings.ContainsAny(asked, `/\`):
			q.files = append(q.files, asked)
		case strings.TrimSpace(asked) != "":
			q.services = append(q.services, asked)
		}
	}
	if values.Has("query") && len(q.files)+len(q.services) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("query"), values["query"], "may not be empty"))
	}
	at := func(name string) (at time.Time) {
		if text := values.Get(name); text != "" {
			var err error
			if at, err = time.Parse(time.RFC3339, text); err != nil {
				errs = append(errs, field.Invalid(field.NewPath(name), text, "invalid time format"))
			}
		}
		return at
	}
	number := func(name string) *int {
		text := values.Get(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(name), text, err.Error()))
		}
		return &n
	}
	q.since, q.until = at("sinceTime"), at("untilTime")
	q.boot, q.tail = number("boot"), number("tailLines")
	if len(errs) == 0 && len(q.files)+len(q.services) == 0 && !q.hasOptions() {
		return nil, nil
	}
	return &q, errs
}

func (q *logQuery) hasOptions() bool {
	return q.tail != nil || q.boot != nil || q.pattern != "" || !q.since.IsZero() || !q.until.IsZero()
}

// check says what can't be answered.
func (q *logQuery) check() (errs field.ErrorList) {
	add := func(err *field.Error) { errs = append(errs, err) }
	query := field.NewPath("query")
	for _, service := range q.services {
		if !serviceName.MatchString(service) {
			add(field.Invalid(query, service, "input contains unsupported characters, or more than 256"))
		}
	}
	switch {
	case len(q.services) > maxLogServices:
		add(field.TooMany(query, len(q.services), maxLogServices))
	case len(q.files)+len(q.services) == 0:
		add(field.Required(query, "cannot be empty with options"))
	case len(q.files) > 0 && len(q.services) > 0:
		add(field.Invalid(query, slices.Concat(q.files, q.services), "cannot specify a file and service"))
	case len(q.files) > 1:
		add(field.Invalid(query, q.files, "cannot specify more than one file"))
	case len(q.files) == 1 && q.hasOptions():
		add(field.Invalid(query, q.files, "cannot specify file with options"))
	}
	if !q.since.IsZero() && !q.until.IsZero() && q.since.After(q.until) {
		add(field.Invalid(field.NewPath("untilTime"), q.until, "must be after `sinceTime`"))
	}
	if q.boot != nil && *q.boot > 0 {
		add(field.Invalid(field.NewPath("boot"), *q.boot, "must be less than 1"))
	}
	if q.tail != nil && (*q.tail < 0 || *q.tail > maxLogLines) {
		add(field.Invalid(field.NewPath("tailLines"), *q.tail, fmt.Sprintf("must be between 0 and %d, inclusive", maxLogLines)))
	}
	if _, err := syntax.Parse(q.pattern, syntax.Perl); err != nil {
		add(field.Invalid(field.NewPath("pattern"), q.pattern, err.Error()))
	}
	return errs
}

// journalArguments are those of journalctl.
func (q *logQuery) journalArguments(units []string) []string {
	args := []string{"--utc", "--no-pager", "--output=short-precise"}
	for _, unit := range units {
		args = append(args, "--unit="+unit)
	}
	if !q.since.IsZero() {
		args = append(args, fmt.Sprintf("--since=@%d", q.since.Unix()))
	}
	if !q.until.IsZero() {
		args = append(args, fmt.Sprintf("--until=@%d", q.until.Unix()))
	}
	if q.tail != nil {
		args = append(args, fmt.Sprintf("--lines=%d", *q.tail))
	}
	if q.pattern != "" {
		args = append(args, "--grep="+q.pattern)
	}
	if q.boot != nil {
		args = append(args, fmt.Sprintf("--boot=%d", *q.boot))
	}
	return args
}

// queryNodeLogs answers a query; it is false if the request is for a file, which its path then names.
func (s *Server) queryNodeLogs(c *gin.Context) (answered bool) {
	q, errs := logQueryOf(c.Request.URL.Query())
	switch {
	case len(errs) > 0:
		s.refuse(c, http.StatusBadRequest, errs.ToAggregate())
		return true
	case q == nil:
		return false
	case strings.Trim(c.Param("file"), "/") != "":
		s.refuse(c, http.StatusNotAcceptable, errors.New("path not allowed in query mode"))
		return true
	}
	if errs := q.check(); len(errs) > 0 {
		s.refuse(c, http.StatusNotAcceptable, errs.ToAggregate())
		return true
	}
	if len(q.files) > 0 {
		file, err := q.filePath(logFiles(s.NodeLogs))
		if err != nil {
			s.refuse(c, http.StatusNotAcceptable, field.Invalid(field.NewPath("query"), q.files, err.Error()))
			return true
		}
		c.Request.URL.Path = "/logs" + file
		return false
	}
	c.Header("Content-Type", "text/plain;charset=UTF-8")
	ctx, cancel := context.WithTimeout(c.Request.Context(), logQueryTimeout)
	defer cancel()
	if c.GetHeader("Accept-Encoding") != "gzip" {
		q.copyTo(ctx, c.Writer, logFiles(s.NodeLogs))
		return true
	}
	c.Header("Content-Encoding", "gzip")
	zipped, _ := gzip.NewWriterLevel(c.Writer, gzip.BestSpeed) // there is this level
	defer zipped.Close()
	q.copyTo(ctx, zipped, logFiles(s.NodeLogs))
	return true
}

// filePath is the path of the file that is asked for, if there is one. That of a directory ends with a
// slash: from any other, clients are sent there, with the query, which is for no path.
func (q *logQuery) filePath(files fs.FS) (string, error) {
	name := path.Clean("/" + q.files[0])
	info, err := fs.Stat(files, cmp.Or(strings.TrimPrefix(name, "/"), "."))
	if err != nil || !info.IsDir() || name == "/" {
		return name, err
	}
	return name + "/", nil
}

// copyTo writes the logs of services: those that the journal has from there, the others from files.
// Whatever fails is said among them, as the answer has begun.
func (q *logQuery) copyTo(ctx context.Context, w io.Writer, files fs.FS) {
	units := journalUnits(ctx)
	var known, unknown []string
	for _, service := range q.services {
		if units[service] || units[service+".service"] {
			known = append(known, service)
		} else {
			unknown = append(unknown, service)
		}
	}
	if len(known) > 0 {
		journal := exec.CommandContext(ctx, "journalctl", q.journalArguments(known)...)
		journal.Stdout, journal.Stderr = w, w
		if err := journal.Run(); err != nil && journal.ProcessState == nil {
			fmt.Fprintf(w, "\nerror: journal output not available: %v\n", err)
		}
	}
	if len(unknown) > 0 && q.hasOptions() {
		fmt.Fprintf(w, "\noptions present and query resolved to log files for %v\ntry without specifying options\n", unknown)
		return
	}
	for _, service := range unknown {
		copyServiceFile(w, files, service)
	}
}

// journalUnits are those that the journal has something of; none where there is no journal.
func journalUnits(ctx context.Context) map[string]bool {
	units := map[string]bool{}
	output, err := exec.CommandContext(ctx, "journalctl", "--field", "_SYSTEMD_UNIT").Output()
	if err != nil {
		return units
	}
	for unit := range strings.FieldsSeq(string(output)) {
		units[unit] = true
	}
	return units
}

// copyServiceFile writes the first of the files in which services keep their logs.
func copyServiceFile(w io.Writer, files fs.FS, service string) {
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		f, err := files.Open(name)
		if err != nil {
			continue
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.IsDir() {
			continue
		}
		if _, err := io.Copy(w, f); err != nil {
			fmt.Fprintf(w, "\nerror getting log for %s: %v\n", service, err)
		}
		return
	}
	fmt.Fprintf(w, "\nlog not found for %s\n", service)
}
