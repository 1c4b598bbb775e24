package send

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/editor"
	"kctl/kubectl/internal/manifest"
	"kctl/kubectl/internal/printer"
)

// EditHelp stands above objects that are edited.
const EditHelp = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`

// ParseEdited reads the objects that came out of the editor, which is opened again where they can't be read.
func (s *Sender) ParseEdited(saved []byte) ([]manifest.Object, error) {
	objects, err := manifest.Parse(saved, "edited-file")
	if err != nil {
		what := fmt.Sprintf("The edited file had a syntax error: %v", err)
		fmt.Fprintln(s.Err, "error: "+what)
		return nil, &editor.RetryError{Reasons: []editor.Reason{{What: what}}}
	}
	return objects, nil
}

// Text is what a user is given to edit.
type Text struct {
	Help    string // above it
	Format  string
	CRLF    bool
	Content []byte
}

// Editable is the printer of what is to be edited.
func (s *Sender) Editable(format string) (printer.Printer, error) {
	if !slices.Contains(editor.Formats, format) {
		return nil, fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s",
			format, strings.Join(editor.Formats, ","))
	}
	return printer.New(printer.Options{Output: format})
}

// Edit lets the user edit a text until accept takes it.
func (s *Sender) Edit(ctx context.Context, text Text, accept func(edited []byte) error) error {
	e := &editor.Editor{In: s.In, Out: s.Out, Err: s.Err, Help: text.Help, Format: text.Format, CRLF: text.CRLF}
	err := e.Edit(ctx, text.Content, accept)
	if errors.Is(err, editor.ErrKept) {
		return frame.ExitCode(frame.ExitError)
	}
	return err
}
