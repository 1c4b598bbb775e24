package filters

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// The headers by which a page of another origin may use the API (Fetch
// standard, "CORS protocol"); the values are upstream's.
const (
	corsMethods = "POST, GET, OPTIONS, PUT, DELETE, PATCH"
	corsHeaders = "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
	corsExposed = "Date"
)

// CORS lets web pages of the allowed origins use the API. It answers browsers'
// preflight requests, which carry no credentials, so it comes before
// authentication.
func CORS(allowed []*regexp.Regexp) gin.HandlerFunc {
	return func(c *gin.Context) {
		origin := c.GetHeader("Origin")
		if origin == "" || !matchesAny(allowed, origin) {
			c.Next()
			return
		}
		c.Header("Access-Control-Allow-Origin", origin)
		c.Header("Access-Control-Allow-Methods", corsMethods)
		c.Header("Access-Control-Allow-Headers", corsHeaders)
		c.Header("Access-Control-Expose-Headers", corsExposed)
		c.Header("Access-Control-Allow-Credentials", "true")
		c.Writer.Header().Add("Vary", "Origin")
		if c.Request.Method == http.MethodOptions {
			c.AbortWithStatus(http.StatusNoContent)
			c.Writer.WriteHeaderNow()
			return
		}
		c.Next()
	}
}

func matchesAny(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// StrictTransport tells browsers to come over HTTPS only (RFC 6797).
func StrictTransport(directives []string) gin.HandlerFunc {
	value := strings.Join(directives, "; ")
	return func(c *gin.Context) {
		c.Header("Strict-Transport-Security", value)
		c.Next()
	}
}
