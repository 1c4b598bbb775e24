package filters

import (
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"kctl/apiserver/internal/request"
)

// Names refuses names that no object and no namespace can have because they
// mean something else in a path, to this server or to proxies and servers
// around it.
func Names() gin.HandlerFunc {
	return func(c *gin.Context) {
		info := request.InfoFrom(c.Request.Context())
		if err := checkName("Namespace", info.Namespace); err != nil {
			fail(c, err)
			return
		}
		if len(info.Parts) > 1 {
			if err := checkName("Name", info.Name); err != nil {
				fail(c, err)
				return
			}
		}
		c.Next()
	}
}

func checkName(what, name string) error {
	if wrong := content.IsPathSegmentName(name); len(wrong) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("%s parameter invalid: %q: %s", what, name, strings.Join(wrong, ";")))
	}
	return nil
}
