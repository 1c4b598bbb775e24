package filters

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"

	"kctl/apiserver/internal/request"
)

// answerTime is how long a client may read an answer after its request's time
// is up.
const answerTime = 10 * time.Second

// Pace bounds how long a client may take to send its body and to read its
// answer: one that does neither would occupy a place among the requests in
// flight for ever. It comes before authentication, so that it also binds
// unauthenticated clients; streams are exempted once their user is known.
func Pace(limit time.Duration, logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		connection := http.NewResponseController(c.Writer)
		end := time.Now().Add(limit)
		if c.Request.ContentLength != 0 {
			// Not reset at the end: the server reads the rest of a refused body, and
			// lifts the bound for the next request.
			try(connection.SetReadDeadline(end), logger)
		}
		// Later than the read deadline: there has to be time to answer that a body is late.
		try(connection.SetWriteDeadline(end.Add(answerTime)), logger)
		c.Next()
		if c.Request.ProtoMajor == 1 {
			try(connection.SetWriteDeadline(time.Time{}), logger)
		}
	}
}

// Stream lets long-running requests take their time.
func Stream(logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		if request.InfoFrom(c.Request.Context()).LongRunning() {
			connection := http.NewResponseController(c.Writer)
			try(connection.SetReadDeadline(time.Time{}), logger)
			try(connection.SetWriteDeadline(time.Time{}), logger)
		}
		c.Next()
	}
}

// try logs a deadline that could not be set: the connection is gone or has been
// handed to a stream.
func try(err error, logger *zap.Logger) {
	if err != nil {
		logger.Debug("no deadline for a connection", zap.Error(err))
	}
}
