package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// tokenOptions has the flags of one `kctl create token`.
type tokenOptions struct {
	*frame.CLI
	frame.Printing
	audiences []string
	duration  time.Duration
	// The object with which the token ends: its kind, name and, optionally, uid.
	kind, name, uid string
}

func newCreateToken(c *frame.CLI) *cobra.Command {
	k := &tokenOptions{CLI: c}
	cmd := &cobra.Command{
		Use: "token SERVICE_ACCOUNT_NAME", Short: "Request a service account token",
		RunE: func(cmd *cobra.Command, args []string) error {
			account, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			if err := k.check(); err != nil {
				return err
			}
			return k.run(cmd.Context(), account)
		},
	}
	fs := cmd.Flags()
	k.Add(fs)
	fs.StringArrayVar(&k.audiences, "audience", nil, "Audience of the requested token. May be repeated.")
	fs.DurationVar(&k.duration, "duration", 0,
		"Requested lifetime of the issued token. If not set or if set to 0, the lifetime will be determined by the server automatically.")
	fs.StringVar(&k.kind, "bound-object-kind", "",
		"Kind of an object to bind the token to. Supported kinds are Node, Pod, Secret. If set, --bound-object-name must be provided.")
	fs.StringVar(&k.name, "bound-object-name", "",
		"Name of an object to bind the token to. The token will expire when the object is deleted. Requires --bound-object-kind.")
	fs.StringVar(&k.uid, "bound-object-uid", "",
		"UID of an object to bind the token to. Requires --bound-object-kind and --bound-object-name. If unset, the UID of "+
			"the existing object is used.")
	return cmd
}

func (k *tokenOptions) check() error {
	switch {
	case k.duration < 0:
		return errors.New("--duration must be greater than or equal to 0")
	case k.kind == "" && k.name != "":
		return errors.New("--bound-object-name can only be set if --bound-object-kind is provided")
	case k.kind == "" && k.uid != "":
		return errors.New("--bound-object-uid can only be set if --bound-object-kind is provided")
	case k.kind == "":
		return nil
	case k.kind != "Node" && k.kind != "Pod" && k.kind != "Secret":
		return errors.New("supported --bound-object-kind values are Node, Pod, Secret")
	case k.name == "":
		return errors.New("--bound-object-name is required if --bound-object-kind is provided")
	}
	return nil
}

func (k *tokenOptions) run(ctx context.Context, account string) error {
	namespace, err := k.Namespace()
	if err != nil {
		return err
	}
	client, err := k.Server()
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: k.audiences}}
	request.APIVersion, request.Kind, request.Name = "authentication.k8s.io/v1", "TokenRequest", account
	if k.duration > 0 {
		request.Spec.ExpirationSeconds = new(int64(k.duration / time.Second))
	}
	if k.kind != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: k.kind, Name: k.name, UID: types.UID(k.uid)}
	}
	answer := &authenticationv1.TokenRequest{}
	if err := client.Resource(core.ServiceAccounts, namespace).Create(ctx, request, answer, rest.Sub("token")); err != nil {
		return fmt.Errorf("failed to create token: %w", err)
	}
	if answer.Status.Token == "" {
		return errors.New("failed to create token: no token in server response")
	}
	if k.Chosen() {
		return k.Print(&k.Printing, "", answer)
	}
	fmt.Fprintln(k.Out, answer.Status.Token)
	return nil
}
