package webhookclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/daemon"
	"kctl/proto/rest"
	"kctl/proto/tracing"
)

const (
	// timeout bounds one question with all its repetitions.
	timeout = 30 * time.Second
	// attempts is how often a question without an answer is sent.
	attempts  = 5
	maxAnswer = 1 << 20
)

var retryPolicy = backoff.Policy{Initial: 500 * time.Millisecond, Max: 5 * time.Second, Factor: 1.5, Jitter: 0.2}

// Service is where reviews are sent.
type Service struct {
	client *http.Client
	url    string
	clock  clock.Clock
	retry  backoff.Policy
}

// Load reads the service's address, and the credentials for it, from a file in
// the form of a kubeconfig. onProblem hears of what is wrong with them later on (see rest.Config).
func Load(file string, clock clock.Clock, onProblem func(error)) (*Service, error) {
	cfg, err := rest.LoadKubeconfig(file)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent, cfg.OnFileProblem = daemon.UserAgent("kctl-apiserver"), onProblem
	client, err := rest.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	asking := *client.HTTP()
	// A question may contain a user's token: it goes where the file says, and
	// nowhere else.
	asking.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Service{client: &asking, url: client.URL("").String(), clock: clock, retry: retryPolicy}, nil
}

// RetryAfter sets the delay before a question without an answer is sent again;
// it grows after that.
func (s *Service) RetryAfter(first time.Duration) *Service {
	changed := *s
	changed.retry.Initial = first
	return &changed
}

// Ask posts question as JSON and decodes the answer into answer. After a
// possibly transient error (no connection, 429, 5xx) it asks again.
func (s *Service) Ask(ctx context.Context, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("ask %s: encode: %w", s.url, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		again, err := s.post(ctx, body, answer)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("ask %s: %w", s.url, err)
		if !again || attempt == attempts || ctx.Err() != nil {
			return err
		}
		if backoff.Sleep(ctx, s.clock, s.retry.Delay(attempt)) != nil {
			return err
		}
	}
}

func (s *Service) post(ctx context.Context, body []byte, answer any) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	tracing.Inject(ctx, r.Header)
	response, err := s.client.Do(r)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError:
		return true, fmt.Errorf("the server answered %s", response.Status)
	case response.StatusCode < 200 || response.StatusCode >= 300:
		return false, fmt.Errorf("the server answered %s", response.Status)
	case err != nil:
		return true, fmt.Errorf("read its answer: %w", err)
	case len(data) > maxAnswer:
		return false, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return false, fmt.Errorf("decode its answer: %w", err)
	}
	return false, nil
}
