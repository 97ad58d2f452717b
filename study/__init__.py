"""What a matcher's yes is worth: matchers against people's judgement and constructed truth."""
