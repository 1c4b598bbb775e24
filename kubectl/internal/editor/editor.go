// Package editor lets a user change objects as text, in the editor of their choice, until what was saved is
// accepted or given up. Its callers decide what the text means and where it goes: it knows no server.
package editor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Editor is the user's editor: what $KUBE_EDITOR or $EDITOR names, or else vi.
type Editor struct {
	In       io.Reader
	Out, Err io.Writer
	// Help stands above the text, in lines that begin with "#", if the format has comments.
	Help string
	// Format is the text's: json, yaml or kyaml.
	Format string
	// CRLF ends the lines of the file as on Windows.
	CRLF bool
}

// Formats are those that can be edited.
var Formats = []string{"json", "kyaml", "yaml"}

// RetryError opens the editor again, with what is wrong above the text.
type RetryError struct{ Reasons []Reason }

// Reason is a problem with the text, with its details.
type Reason struct {
	What    string
	Details []string
}

func (e *RetryError) Error() string {
	var all []string
	for _, reason := range e.Reasons {
		all = append(all, strings.Join(append([]string{reason.What}, reason.Details...), "\n"))
	}
	return strings.Join(all, "\n")
}

// KeptError ends the editing; the file stays, and %s in the message stands for its name.
type KeptError struct{ Message string }

func (e *KeptError) Error() string { return e.Message }

// ErrKept is what Edit returns when the user has been told everything.
var ErrKept = errors.New("the edited file was kept")

// Edit opens the editor on the content until accept accepts what was saved. Empty or unchanged text ends it
// without a call of accept. If there is a problem that can't be fixed in the editor, the file stays.
func (e *Editor) Edit(ctx context.Context, content []byte, accept func(edited []byte) error) error {
	before := content
	var retry *RetryError
	for {
		edited, path, err := e.editFile(ctx, content, retry)
		switch {
		case err != nil:
			return err
		case len(edited) == 0:
			fmt.Fprintln(e.Err, "Edit cancelled, saved file was empty.")
			return os.Remove(path)
		case retry != nil && bytes.Equal(edited, content):
			return e.keptFileError(path, errors.New("Edit cancelled, no valid changes were saved.")) //nolint:staticcheck // kubectl's words
		case bytes.Equal(edited, before):
			fmt.Fprintln(e.Err, "Edit cancelled, no changes made.")
			return os.Remove(path)
		}
		err = accept(edited)
		var kept *KeptError
		switch {
		case errors.As(err, &retry) && ctx.Err() == nil:
			content = edited
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("removing the edited file: %w", err)
			}
		case errors.As(err, &kept):
			fmt.Fprintf(e.Err, kept.Message+"\n", path)
			return ErrKept
		case err != nil:
			return e.keptFileError(path, err)
		default:
			return os.Remove(path)
		}
	}
}

// keptFileError says where the user's work is.
func (e *Editor) keptFileError(path string, err error) error {
	fmt.Fprintf(e.Err, "A copy of your changes has been stored to %q\n", path)
	return err
}

// editFile lets the user edit a file, and returns what was saved, without the comments above it.
func (e *Editor) editFile(ctx context.Context, content []byte, retry *RetryError) (edited []byte, path string, err error) {
	extension := "yaml"
	if e.Format == "json" {
		extension = "json"
	} else {
		content = append([]byte(e.head(retry)), content...)
	}
	if e.CRLF {
		content = bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
	}
	file, err := os.CreateTemp("", "kctl-edit-*."+extension)
	if err != nil {
		return nil, "", fmt.Errorf("making the file to edit: %w", err)
	}
	path = file.Name()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, path, fmt.Errorf("writing the file to edit: %w", err)
	}
	program := cmp.Or(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR"), "vi")
	// Through a shell: editors are given with arguments, "code --wait".
	command := exec.CommandContext(ctx, "/bin/sh", "-c", program+` "$1"`, "sh", path)
	command.Stdin, command.Stdout, command.Stderr = e.In, e.Out, e.Err
	if err := command.Run(); err != nil {
		return nil, path, errors.Join(fmt.Errorf("there was a problem with the editor %q: %w", program, err), os.Remove(path))
	}
	saved, err := os.ReadFile(path)
	if err != nil {
		return nil, path, fmt.Errorf("reading the edited file: %w", err)
	}
	if e.CRLF {
		saved = bytes.ReplaceAll(saved, []byte("\r\n"), []byte("\n"))
	}
	return withoutHead(saved), path, nil
}

// head is the comment above the text: the help, and the problems from last time.
func (e *Editor) head(retry *RetryError) string {
	if retry == nil {
		return e.Help
	}
	head := strings.Builder{}
	head.WriteString(e.Help)
	comment := func(lead, text string) {
		fmt.Fprintf(&head, "# %s%s\n", lead, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n# "))
	}
	for _, reason := range retry.Reasons {
		end := ""
		if len(reason.Details) > 0 {
			end = ":"
		}
		comment("", reason.What+end)
		for _, detail := range reason.Details {
			comment("* ", detail)
		}
		head.WriteString("#\n")
	}
	return head.String()
}

// withoutHead cuts the comment lines above the content.
func withoutHead(saved []byte) []byte {
	for bytes.HasPrefix(saved, []byte("#")) {
		_, rest, _ := bytes.Cut(saved, []byte("\n"))
		saved = rest
	}
	if len(bytes.TrimSpace(saved)) == 0 {
		return nil
	}
	return saved
}
