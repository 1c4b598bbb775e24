package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pluginv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

const (
	pluginTimeout = time.Minute // upstream's
	// A plugin's output is bounded: it should only be a few credentials.
	maxResponse, maxStderr = 1 << 20, 4 << 10
)

// run runs the program: it gets a request on its standard input, and writes a
// response to its standard output and messages for people to its standard error.
func (p *plugin) run(ctx context.Context, who identity, repository string) (*pluginv1.CredentialProviderResponse, error) {
	request, err := json.Marshal(&pluginv1.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "CredentialProviderRequest"},
		Image:    repository, ServiceAccountToken: who.token, ServiceAccountAnnotations: who.annotations,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	answer, words := &limitedBuffer{max: maxResponse}, &limitedBuffer{max: maxStderr}
	cmd := exec.CommandContext(ctx, p.path, p.Args...)
	cmd.Env = os.Environ()
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value) // the last one counts
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), answer, words
	// Together with its children, which would hold its output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %s", p.timeout)
		}
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(words.kept))
	}
	if answer.over {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxResponse)
	}
	response := &pluginv1.CredentialProviderResponse{}
	if err := json.Unmarshal(answer.kept, response); err != nil {
		return nil, errors.New("its answer is not a CredentialProviderResponse in JSON") // and may hold a password
	}
	return response, p.checkResponse(response)
}

// limitedBuffer keeps the beginning of what is written to it.
type limitedBuffer struct {
	kept []byte
	max  int
	over bool
}

func (b *limitedBuffer) Write(data []byte) (int, error) {
	room := min(len(data), b.max-len(b.kept))
	b.kept = append(b.kept, data[:room]...)
	b.over = b.over || room < len(data)
	return len(data), nil
}
