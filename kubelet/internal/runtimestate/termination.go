package runtimestate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/logs"
)

// Limits of a container's termination message: from its file, or, if it wrote
// none, from the end of its log.
const (
	maxMessageBytes    = 4096
	maxMessageLogBytes = 2048
	maxMessageLogLines = 80
)

// withTerminationMessage is the runtime's message about an exited container,
// followed by the message that the container left.
func withTerminationMessage(ctx context.Context, c *runtimeapi.ContainerStatus) string {
	told, left := cri.Shorten(c.GetMessage()), terminationMessage(ctx, c)
	switch {
	case left == "":
		return told
	case told == "":
		return left
	}
	return told + ": " + left
}

func terminationMessage(ctx context.Context, c *runtimeapi.ContainerStatus) string {
	path := c.GetAnnotations()[annotationTerminationMessagePath]
	for _, mount := range c.GetMounts() {
		if path == "" || mount.GetContainerPath() != path {
			continue
		}
		content, err := tailOfFile(mount.GetHostPath(), maxMessageBytes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "Error on reading termination log " + mount.GetHostPath() + ": " + err.Error()
		}
		if len(content) > 0 {
			return string(content)
		}
	}
	policy := corev1.TerminationMessagePolicy(c.GetAnnotations()[annotationTerminationPolicy])
	if policy == corev1.TerminationMessageFallbackToLogsOnError && c.GetExitCode() != 0 {
		return endOfLog(ctx, c.GetLogPath())
	}
	return ""
}

// tailOfFile is at most the last limit bytes of a regular file. The container
// can change the file, so links and pipes are not followed.
func tailOfFile(path string, limit int64) ([]byte, error) {
	f, err := logs.OpenRegular(path, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if size := info.Size(); size > limit {
		if _, err := f.Seek(size-limit, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// endOfLog is the text of the last lines of a log in the CRI format (time,
// stream, P|F, text), without the fields around the text.
func endOfLog(ctx context.Context, path string) string {
	if err := logs.AwaitComplete(ctx, path, clock.RealClock{}); err != nil {
		return ""
	}
	// A CRI line is at most 16 KiB and a few bytes; this is enough for the last
	// lines' text to fill the message.
	content, err := tailOfFile(path, 64<<10)
	if err != nil {
		return ""
	}
	lines := bytes.SplitAfter(content, []byte{'\n'})
	var text []string
	size, complete := 0, 0
	for i := len(lines) - 1; i >= 0 && complete <= maxMessageLogLines && size < maxMessageLogBytes; i-- {
		part, whole, ok := logText(lines[i])
		if !ok {
			continue
		}
		if whole {
			complete++
			if complete > maxMessageLogLines {
				break
			}
		}
		text = append(text, part)
		size += len(part)
	}
	var out strings.Builder
	for _, part := range slices.Backward(text) {
		out.WriteString(part)
	}
	message := out.String()
	if len(message) > maxMessageLogBytes {
		message = message[len(message)-maxMessageLogBytes:]
	}
	return message
}

// logText extracts the text of one line; whole says that the text ends a line.
func logText(line []byte) (text string, whole, ok bool) {
	fields := bytes.SplitN(line, []byte{' '}, 4)
	if len(fields) < 4 || !bytes.HasSuffix(line, []byte{'\n'}) {
		return "", false, false
	}
	if string(fields[2]) == "P" {
		return strings.TrimSuffix(string(fields[3]), "\n"), false, true
	}
	return string(fields[3]), true, true
}
