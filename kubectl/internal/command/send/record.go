package send

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/rollout"
)

// AddRecord adds --record, which has been deprecated in kubectl for years.
func (s *Sender) AddRecord(cmd *cobra.Command) {
	s.cmd = cmd
	flag := cmd.Flags().VarPF((*recordFlag)(s), "record", "",
		"Record the command line in the annotation "+rollout.ChangeCause+" of what it changes.")
	flag.NoOptDefVal, flag.Hidden = "true", true
}

// recordFlag is --record of a verb.
type recordFlag Sender

func (f *recordFlag) String() string { return strconv.FormatBool(f.record) }

func (f *recordFlag) Type() string { return "bool" }

// Set says that the flag has no future here: cobra would say so on standard output.
func (f *recordFlag) Set(text string) (err error) {
	fmt.Fprintln(f.Err, "Flag --record has been deprecated, --record will be removed in the future")
	f.record, err = strconv.ParseBool(text)
	return err
}

// Cause is what --record writes on changed objects: the command line, verbs and
// names first, as in kubectl; "" without the flag.
func (s *Sender) Cause() string {
	if !s.record {
		return ""
	}
	flags := ""
	_ = s.cmd.Flags().ParseAll(s.Args, func(flag *pflag.Flag, value string) error { // has been parsed before
		if flag.Name == "token" || flag.Name == "password" {
			value = "CLASSIFIED" // everyone who may read the object could read it
		}
		flags += " --" + flag.Name + "=" + value
		return nil
	})
	return strings.Join(append([]string{s.Name}, s.cmd.Flags().Args()...), " ") + flags
}

// Record writes the command line on an object that is to be sent, with --record.
func (s *Sender) Record(object metav1.Object) {
	cause := s.Cause()
	if cause == "" {
		return
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[rollout.ChangeCause] = cause
	object.SetAnnotations(annotations)
}

// WithCause adds the command line, with --record, to a merge patch.
func (s *Sender) WithCause(patch []byte) ([]byte, error) {
	if s.Cause() == "" {
		return patch, nil
	}
	whole := &unstructured.Unstructured{}
	if err := json.Unmarshal(patch, &whole.Object); err != nil {
		return nil, fmt.Errorf("decoding the patch: %w", err)
	}
	s.Record(whole)
	recorded, err := json.Marshal(whole.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return recorded, nil
}

// PatchCause writes the command line, with --record, on an object that was changed
// in another way than by sending it; nil if nothing was written.
func (s *Sender) PatchCause(ctx context.Context, t lookup.Target) (*unstructured.Unstructured, error) {
	cause := s.Cause()
	if cause == "" {
		return nil, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{rollout.ChangeCause: cause}}})
	if err != nil {
		return nil, fmt.Errorf("encoding the command line: %w", err)
	}
	return s.Patch(ctx, t, types.MergePatchType, body)
}
