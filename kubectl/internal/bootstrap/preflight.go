package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/kubectl/internal/doctor"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// maxClockSkew is how far clocks may be apart: certificates are backdated by as
// much.
const maxClockSkew = 5 * time.Minute

// checkClock compares the server's clock with this machine's.
func (c *Cluster) checkClock(now time.Time) doctor.Check {
	check := doctor.Check{Name: "clock", Result: doctor.OK}
	if c.Time.IsZero() {
		check.Result, check.Detail = doctor.Warn, "the server does not tell its time"
		return check
	}
	apart := now.Sub(c.Time).Round(time.Second)
	check.Detail = fmt.Sprintf("%s off from the server's clock", apart.Abs())
	if apart.Abs() > maxClockSkew {
		check.Result, check.Advice = doctor.Fail, "set the clock (`timedatectl set-ntp true`): certificates and leases go by it"
	}
	return check
}

// checkAdmission asks the server, with the token, about the node: whether it knows
// the token, and whether the name is another machine's.
func (c *Cluster) checkAdmission(ctx context.Context, token *Token, node string) []doctor.Check {
	const name = "token"
	client, err := rest.New(&rest.Config{Host: c.Server, CAData: c.CA, BearerToken: token.String(), Timeout: requestTimeout})
	if err != nil {
		return []doctor.Check{{Name: name, Result: doctor.Fail, Detail: err.Error()}}
	}
	defer client.HTTP().CloseIdleConnections()
	good := doctor.Check{Name: name, Result: doctor.OK, Detail: "the server knows " + token.ID}
	var found core.Node
	err = client.Resource(core.Nodes, "").Get(ctx, node, &found)
	switch {
	case err == nil:
		return []doctor.Check{good, nameOf(&found)}
	case apierrors.IsNotFound(err):
		return []doctor.Check{good, {Name: "node-name", Result: doctor.OK, Detail: node + " is free"}}
	case apierrors.IsForbidden(err):
		return []doctor.Check{good, {Name: "node-name", Result: doctor.Warn, Detail: "the token may not ask whether " + node + " is taken",
			Advice: "make tokens by `kctl token create`, which gives them the rights that joining takes"}}
	case apierrors.IsUnauthorized(err):
		return []doctor.Check{{Name: name, Result: doctor.Fail, Detail: "the server does not know the token " + token.ID +
			": it has expired, was deleted, or the API server runs without --enable-bootstrap-token-auth",
			Advice: "make a new one on the control plane: `kctl token create --print-join-command`"}}
	}
	return []doctor.Check{{Name: name, Result: doctor.Fail, Detail: withoutQuery(err),
		Advice: "see that the API server is well: `kctl doctor` on the control plane"}}
}

func withoutQuery(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err.Error()
	}
	return err.Error()
}

// nameOf says whether this machine may take an existing node's name: if the
// node is this machine, or not alive.
func nameOf(node *core.Node) doctor.Check {
	const name = "node-name"
	if id := bootID(); id != "" && node.Status.NodeInfo.BootID == id {
		return doctor.Check{Name: name, Result: doctor.OK, Detail: node.Name + " is this machine"}
	}
	if core.NodeReady(node) {
		return doctor.Check{
			Name:   name,
			Result: doctor.Fail,
			Detail: "another machine is the node " + node.Name + " and alive",
			Advice: "give this one another name by --node-name",
		}
	}
	return doctor.Check{Name: name, Result: doctor.Warn, Detail: "a node " + node.Name +
		" was there and is not alive: this machine takes its place"}
}

// bootID distinguishes this machine from others. The machine id would not do:
// copies of a disk share it.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

// checkError is the error from a machine's checks; nil if none failed, apart from
// those that are ignored.
func checkError(checks []doctor.Check, ignore []string) error {
	var failed []string
	for _, check := range checks {
		if check.Result != doctor.Fail || isIgnored(check.Name, ignore) {
			continue
		}
		line := "\t" + check.Name + ": " + check.Detail
		if check.Advice != "" {
			line += "; " + check.Advice
		}
		failed = append(failed, line)
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("this machine can't join, and nothing was changed:\n%s\n(--ignore-preflight-errors=NAME,… ignores them)",
		strings.Join(failed, "\n"))
}

func isIgnored(name string, ignore []string) bool {
	return slices.ContainsFunc(ignore, func(i string) bool { return i == name || i == "all" })
}
