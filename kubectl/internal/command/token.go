package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"kctl/proto/core"
	"kctl/proto/rest"
)

func (c *cli) createToken(ctx context.Context, account string, audiences []string, duration time.Duration) error {
	if duration < 0 {
		return errors.New("--duration must be greater than or equal to 0")
	}
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	client, err := c.server()
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	request.APIVersion, request.Kind, request.Name = "authentication.k8s.io/v1", "TokenRequest", account
	if duration > 0 {
		seconds := int64(duration / time.Second)
		request.Spec.ExpirationSeconds = &seconds
	}
	answer := &authenticationv1.TokenRequest{}
	if err := client.Resource(core.ServiceAccounts, namespace).Create(ctx, request, answer, rest.Sub("token")); err != nil {
		return fmt.Errorf("failed to create token: %w", err)
	}
	if answer.Status.Token == "" {
		return errors.New("failed to create token: no token in server response")
	}
	fmt.Fprintln(c.Out, answer.Status.Token)
	return nil
}

func quote(s string) string { return strconv.Quote(s) }
