package relay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// RestartHeader is the HTTP request header that carries restarts. It is apart from Header, which an
// older server would refuse as a whole.
const RestartHeader = "Kctl-Restarts"

// maxRestartText bounds what is read of one restart: four times what can be written of it today, for
// what newer kubelets may add.
const maxRestartText = 1024

// EncodeRestarts writes restarts as a header value:
// "container/number/cause/exit code/reason=time;time;…,…", the times in microseconds and in the order of
// Restart.Times, empty where there is none.
func EncodeRestarts(restarts []Restart) string {
	var b []byte
	for i, r := range restarts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, r.Container...), '/')
		b = append(strconv.AppendInt(b, int64(r.Number), 10), '/')
		b = append(append(b, r.Cause...), '/')
		b = append(strconv.AppendInt(b, int64(r.ExitCode), 10), '/')
		if validReason(r.Reason) { // which the runtime has chosen
			b = append(b, r.Reason...)
		}
		separator := byte('=')
		for _, at := range r.Times() {
			b = append(b, separator)
			separator = ';'
			if !at.IsZero() {
				b = strconv.AppendInt(b, at.UnixMicro(), 10)
			}
		}
	}
	return string(b)
}

// DecodeRestarts reads a header value. It refuses values that hold more restarts than are
// remembered of a pod, or that no kubelet could have written.
func DecodeRestarts(value string) ([]Restart, error) {
	if value == "" {
		return nil, nil
	}
	if len(value) > MaxRestarts*maxRestartText {
		return nil, fmt.Errorf("%s: %d bytes; at most %d are accepted", RestartHeader, len(value), MaxRestarts*maxRestartText)
	}
	parts := strings.SplitN(value, ",", MaxRestarts+1)
	if len(parts) > MaxRestarts {
		return nil, fmt.Errorf("%s: at most %d restarts are accepted", RestartHeader, MaxRestarts)
	}
	restarts := make([]Restart, len(parts))
	for i, part := range parts {
		if err := decodeRestart(part, &restarts[i]); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", RestartHeader, part, err)
		}
	}
	return restarts, nil
}

func decodeRestart(text string, r *Restart) error {
	what, when, _ := strings.Cut(text, "=")
	fields := strings.Split(what, "/")
	if len(fields) != 5 {
		return errors.New("is not container/number/cause/exit code/reason")
	}
	number, err := strconv.ParseInt(fields[1], 10, 32)
	if err != nil || number < 1 {
		return fmt.Errorf("%q is no number of a restart", fields[1])
	}
	code, err := strconv.ParseInt(fields[3], 10, 32)
	if err != nil {
		return fmt.Errorf("exit code: %w", err)
	}
	cause := slices.Index(causes, Cause(fields[2]))
	if len(content.IsDNS1123Label(fields[0])) > 0 || !validReason(fields[4]) || cause < 0 && fields[2] != "" {
		return errors.New("is of no container, or gives no cause or reason that there is")
	}
	r.Number, r.ExitCode = int32(number), int32(code)
	// Cloned, so that what is remembered doesn't keep the whole header.
	r.Container, r.Reason = strings.Clone(fields[0]), strings.Clone(fields[4])
	if cause >= 0 {
		r.Cause = causes[cause]
	}
	times := r.Times()
	all := strings.Split(when, ";")
	if len(all) > 2*len(times) { // those of a newer kubelet are ignored
		return fmt.Errorf("has %d times", len(all))
	}
	for i, at := range all {
		if at == "" || i >= len(times) {
			continue
		}
		micros, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return fmt.Errorf("time: %w", err)
		}
		*times[i] = time.UnixMicro(micros).UTC()
	}
	return nil
}

// validReason reports whether it is a word as runtimes give them, or empty.
func validReason(reason string) bool {
	return len(reason) <= 63 && !strings.ContainsFunc(reason, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}
