package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/archive"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/remote"
	"kctl/proto/core"
)

// copyOptions has the flags of one `kctl cp`.
type copyOptions struct {
	attachOptions
	noPreserve bool
	retries    int
}

// copyEndpoint is one side of a copy: a local path, or one in a pod.
type copyEndpoint struct{ namespace, pod, path string }

func newCopy(c *frame.CLI) *cobra.Command {
	k := &copyOptions{attachOptions: attachOptions{CLI: c, quiet: true}}
	cmd := &cobra.Command{
		Use:     "cp <file-spec-src> <file-spec-dest>",
		Short:   "Copy files and directories to and from containers",
		Long:    "Copy files and directories to and from containers.\n\nThe container's image must have tar.",
		Example: "  kctl cp /tmp/data web:/tmp/data\n  kctl cp blue/web:/var/log/app.log ./app.log -c app",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("source and destination are required")
			}
			return k.ended(k.copy(cmd.Context(), args[0], args[1]))
		},
	}
	cmd.Flags().StringVarP(&k.container, "container", "c", "",
		"Container name. If omitted, use the annotation for the default container or the first one")
	cmd.Flags().BoolVar(&k.noPreserve, "no-preserve", false,
		"The copied file/directory's ownership and permissions will not be preserved in the container")
	cmd.Flags().IntVar(&k.retries, "retries", 0, "Accepted for kubectl's sake: a copy that breaks off is not resumed")
	_ = cmd.Flags().MarkHidden("retries")
	return cmd
}

// parsePlace reads PATH, POD:PATH or NAMESPACE/POD:PATH. What begins like a
// path is a path, even with a colon in it.
func parsePlace(arg string) (copyEndpoint, error) {
	where, file, inPod := strings.Cut(arg, ":")
	if !inPod || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") {
		return copyEndpoint{path: arg}, nil
	}
	if file == "" || where == "" {
		return copyEndpoint{}, errors.New("filepath can not be empty")
	}
	p := copyEndpoint{pod: where, path: file}
	if namespace, pod, ok := strings.Cut(where, "/"); ok {
		p.namespace, p.pod = namespace, pod
	}
	if p.pod == "" || strings.Contains(p.pod, "/") {
		return copyEndpoint{}, fmt.Errorf("%q is not NAMESPACE/POD:PATH", arg)
	}
	return p, nil
}

func (k *copyOptions) copy(ctx context.Context, from, to string) error {
	source, err := parsePlace(from)
	if err != nil {
		return err
	}
	destination, err := parsePlace(to)
	if err != nil {
		return err
	}
	switch {
	case source.pod != "" && destination.pod != "":
		return errors.New("one of src or dest must be a local file specification")
	case source.pod == "" && destination.pod == "":
		return errors.New("one of src or dest must be a remote file specification")
	case source.path == "" || destination.path == "":
		return errors.New("filepath can not be empty")
	case source.pod != "":
		return k.download(ctx, source, destination.path)
	}
	return k.upload(ctx, source.path, destination)
}

func (k *copyOptions) podAt(ctx context.Context, p copyEndpoint) (*core.Pod, error) {
	if p.namespace != "" {
		loaded, err := k.Kubeconfig()
		if err != nil {
			return nil, err
		}
		loaded.Namespace = p.namespace
	}
	return k.runningPod(ctx, p.pod)
}

// stream runs a command in the container, with streams other than the user's.
func (k *copyOptions) stream(ctx context.Context, pod *core.Pod, in io.Reader, out io.Writer, command ...string) error {
	container, err := chooseContainer(k.Err, pod, k.container)
	if err != nil {
		return err
	}
	loaded, err := k.Kubeconfig()
	if err != nil {
		return err
	}
	k.stdin = in != nil
	address, err := k.joinAddress(pod, "exec", container, command)
	if err != nil {
		return err
	}
	var said headBuffer
	err = remote.Join(ctx, loaded.Client, address, remote.Streams{In: in, Out: out, Err: &said})
	switch text := said.String(); {
	case err != nil && text != "":
		return fmt.Errorf("%s\n%w", text, err)
	case err != nil && strings.Contains(err.Error(), noTar):
		return fmt.Errorf("the container's image has no tar, which cp needs: %w", err)
	}
	return err
}

// ended says why a copy ended if tar failed, whose exit code becomes kctl's.
func (k *copyOptions) ended(err error) error {
	var exit *remote.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	fmt.Fprintln(k.Err, printer.Visible(err.Error()))
	return frame.ExitCode(exit.Code)
}

// noTar is what runc says of an image that only holds its program.
const noTar = `exec: "tar": executable file not found`

// headBuffer keeps the first part of a container's output, which may have no end.
type headBuffer struct {
	mu   sync.Mutex // what arrived of a cut stream may still be in use
	text []byte
}

const mostSaid = 4 << 10

func (b *headBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, text[:min(len(text), mostSaid-len(b.text))]...)
	return len(text), nil
}

func (b *headBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(string(b.text))
}

func (k *copyOptions) upload(ctx context.Context, source string, to copyEndpoint) error {
	if _, err := os.Stat(source); err != nil {
		return fmt.Errorf("%s doesn't exist in local filesystem", source)
	}
	pod, err := k.podAt(ctx, to)
	if err != nil {
		return err
	}
	// Into a directory that is there, or else under the new name. An image without
	// test(1) can't tell; there, a slash at the end does.
	destination := path.Clean(to.path)
	err = k.stream(ctx, pod, nil, io.Discard, "test", "-d", destination)
	var answered *remote.ExitError
	if err == nil || !errors.As(err, &answered) && strings.HasSuffix(to.path, "/") {
		destination = path.Join(destination, filepath.Base(filepath.Clean(source)))
	}
	dir, name := path.Split(destination)
	dir = path.Clean(dir)
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := archive.Pack(writer, source, name)
		packed <- err
		writer.CloseWithError(err)
	}()
	command := []string{"tar", "-xmf", "-", "-C", dir}
	if k.noPreserve {
		command = []string{"tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-", "-C", dir}
	}
	err = k.stream(ctx, pod, reader, k.Err, command...)
	_ = reader.Close() // so that packing ends if the container ended first
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		err = errors.Join(packErr, err)
	}
	return err
}

func (k *copyOptions) download(ctx context.Context, from copyEndpoint, destination string) error {
	pod, err := k.podAt(ctx, from)
	if err != nil {
		return err
	}
	streaming, cut := context.WithCancel(ctx)
	defer cut()
	reader, writer := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := k.stream(streaming, pod, nil, writer, "tar", "cf", "-", from.path)
		sent <- err
		_ = writer.Close()
	}()
	files, err := archive.Unpack(reader, from.path, destination, func(text string) { k.Warn("%s", text) })
	if err == nil {
		err = discardPadding(reader)
	}
	if err != nil && len(sent) == 0 { // what the container still sends may have no end
		cut()
		_ = reader.Close()
		<-sent
		return err
	}
	if sendErr := <-sent; sendErr != nil {
		return sendErr
	}
	if err == nil && files == 0 {
		k.Warn("nothing was copied: %s has no files", from.path)
	}
	return err
}

// mostPadding is more than any tar normally writes after an archive: the rest of a
// record, whose length -b sets.
const mostPadding = 1 << 20

// discardPadding reads what follows an archive to its end.
func discardPadding(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, mostPadding+1))
	if err == nil && n > mostPadding {
		return errors.New("the container keeps sending data after the end of the archive")
	}
	return err
}
