package handlers

import (
	"context"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/managed"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// maxManagerName is how long a manager's name is at most; upstream's.
const maxManagerName = 128

// managerOf is who writes: as the client says, or else the program's name at
// the beginning of its user agent.
func managerOf(fieldManager, userAgent string) string {
	if fieldManager != "" {
		return fieldManager
	}
	name, _, _ := strings.Cut(userAgent, "/")
	var out strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if out.Len()+len(string(r)) > maxManagerName {
			break
		}
		out.WriteRune(r)
	}
	if out.Len() == 0 {
		return "unknown"
	}
	return out.String()
}

func (c *call) by(fieldManager string) managed.By {
	return managed.By{Manager: managerOf(fieldManager, c.gin.Request.UserAgent()), Subresource: c.subresource}
}

// accounted has a change entered into the object's accounts.
func (c *call) accounted(admit registry.Admit, fieldManager string) registry.Admit {
	if c.accounts == nil {
		return admit
	}
	by := c.by(fieldManager)
	admit.Account = func(obj, old core.Object, before []byte) { c.accounts.Update(obj, old, before, by) }
	return guardAccounts(admit)
}

// guardAccounts undoes what admission does to the accounts where it makes them
// unreadable, and says so.
func guardAccounts(admit registry.Admit) registry.Admit {
	mutate := admit.Mutate
	admit.Mutate = func(ctx context.Context, obj, old core.Object) error {
		var before []metav1.ManagedFieldsEntry
		if obj != nil {
			before = obj.GetManagedFields()
		}
		err := mutate(ctx, obj, old)
		if err == nil && obj != nil {
			if unreadable := managed.Guard(obj, before); unreadable != nil {
				request.Warn(ctx, ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: "+unreadable.Error())
			}
		}
		return err
	}
	return admit
}
